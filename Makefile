# Each target is a command of make.py, which also serves machines without make.
PYTHON ?= python3

book test lab notebooks clean:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed: this book needs Python 3.11 or newer."; exit 1; }
	@$(PYTHON) make.py $@

.PHONY: book test lab notebooks clean
.DEFAULT_GOAL := book
