"""One folder a lab: to copy a folder is to make a lab, in Python and in the front end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from attn_lib import labs

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "attn_lib/labs").glob("*/lab.py"))


def test_every_folder_holds_the_lab_of_its_name():
    names = ["".join(word.title() for word in path.name.split("_")) + "Lab" for path in FOLDERS]
    assert [*sorted(names), "overview"] == labs.__all__
    for folder, name in zip(FOLDERS, names, strict=True):
        assert getattr(labs, name).__module__ == f"attn_lib.labs.{folder.name}.lab"
        assert (folder / "lab.js").is_file() and (folder / "__init__.py").is_file()


def test_a_copied_folder_is_a_lab(node_modules, tmp_path):
    ignore = shutil.ignore_patterns("node_modules", "__pycache__")
    library = Path(shutil.copytree(ROOT / "attn_lib", tmp_path / "attn_lib", ignore=ignore))
    pair = Path(shutil.copytree(library / "labs/heads", library / "labs/two_heads"))
    for path in pair.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        text = text.replace("HeadsLab", "TwoHeadsLab").replace("labs.heads", "labs.two_heads")
        path.write_text(text, encoding="utf-8")
    (library / "labs/js/node_modules").symlink_to(node_modules, target_is_directory=True)
    for command in (
        ["node", "labs/js/build.mjs"],
        [sys.executable, "-c", "from attn_lib.labs import TwoHeadsLab as T; T().save('lab.html')"],
    ):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=library, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
    page = (library / "lab.html").read_text(encoding="utf-8")
    script = page[page.rindex("<script>") :]
    assert 'data-lab="TwoHeadsLab"' in page and "TwoHeadsLab" in script
