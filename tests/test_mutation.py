"""tests/mutation.py on a small module: it tells tests that notice from tests that do not."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutation.py")
TOY = '''
def share(x, total=2.0):
    """Halve what is positive; nothing else is shared."""
    if x > 0:
        return x / total
    return 0.0
'''
WEAK = "assert share(3) > 0"
STRONG = "assert [share(x) for x in (3, 2, 0.5, 0, -0.5)] == [1.5, 1, 0.25, 0, 0]"
RUN = "import sys; sys.path.insert(0, sys.argv[1]); import mutation; from pathlib import Path"
ALIKE = "mutation.EQUIVALENT['0 / 2 is 0'] = 'share: if x > 0: → if x >= 0:'"
MAIN = "sys.exit(mutation.main(['toy'], Path(sys.argv[2])))"


@pytest.fixture
def mutate(tmp_path):
    """Return a function that runs the script on the toy with a test: exit code and words."""
    for name in ("attn_lib", "tests", "book"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "attn_lib/__init__.py").touch()
    (tmp_path / "attn_lib/toy.py").write_text(TOY)

    def run(test):
        text = f"from attn_lib.toy import share\n\ndef test_share():\n    {test}\n"
        (tmp_path / "tests/test_toy.py").write_text(text)
        code = "\n".join([RUN, ALIKE, MAIN])
        command = [sys.executable, "-c", code, str(SCRIPT.parent), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    return run


def test_names_what_a_weak_test_lets_through(mutate):
    code, words = mutate(WEAK)
    assert code == 1
    assert "survives in toy, share: return x / total → return x * total\n" in words
    assert "if x > 0: → if x <= 0:" not in words  # that one is noticed
    assert "1 equivalent" in words


def test_is_content_with_a_strong_one(mutate):
    code, words = mutate(STRONG)
    assert code == 0, words
    assert "survives" not in words and "100.0 %; 1 equivalent" in words


def test_refuses_tests_that_fail_anyway(mutate):
    code, words = mutate("assert False")
    assert code == 1 and "the tests of toy fail without any change" in words
