"""The front end's own checks, where Node is: lint, format, types, units without a browser."""

import shutil
import subprocess

import pytest


@pytest.mark.parametrize("script", ["lint", "types", "test"])
def test_front_end(node_modules, script):
    command = [shutil.which("npm"), "run", "--silent", script]
    done = subprocess.run(command, cwd=node_modules.parent, capture_output=True, text=True)
    assert done.returncode == 0, f"npm run {script}\n{done.stdout}{done.stderr}"
