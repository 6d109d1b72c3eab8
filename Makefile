# Every target goes to make.py, which also serves machines without make: `make help` lists them.
# Options of JupyterLab and pytest: make lab ARGS="--port 8890", make test ARGS="-k masks -x"
PYTHON ?= python3
.DEFAULT_GOAL := book

%: always
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed: this book needs Python 3.11 or newer."; exit 1; }
	@$(PYTHON) make.py $@ $(ARGS)

Makefile always: ;
.PHONY: always
