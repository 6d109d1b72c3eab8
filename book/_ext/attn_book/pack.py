"""Pack the chapters' notebooks, attn_lib and its requirements into one zip: ``make notebooks``."""

import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME = "self-attention-from-first-principles"
README = """\
The chapters of Self-Attention from First Principles as notebooks. In this folder:

    python -m venv .venv
    .venv/bin/pip install -r requirements.txt        (Windows: .venv\\Scripts\\pip ...)
    .venv/bin/jupyter lab                            (Windows: .venv\\Scripts\\jupyter lab)

In Colab: upload the zip, then  !unzip -oq {name}.zip  and  %cd {name}
Text: CC BY 4.0. Code: BSD 3-Clause, see LICENSE.
"""


def contents():
    """Yield the name and bytes of every file of the zip, in a fixed order."""
    yield "README.txt", README.format(name=NAME).encode()
    yield "LICENSE", (ROOT / "LICENSE").read_bytes()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needs = {*project["dependencies"], *extras["labs"], *extras["book"], "jupyterlab>=4,<5"}
    yield "requirements.txt", "".join(f"{need}\n" for need in sorted(needs)).encode()
    notebooks = sorted((ROOT / "_build/notebooks").glob("*.ipynb"))
    yield from ((path.name, path.read_bytes()) for path in notebooks)
    for folder, top in (("attn_lib", ROOT), ("data", ROOT / "book")):
        for path in sorted((top / folder).rglob("*")):
            name = path.relative_to(top).as_posix()
            script = path.suffix in (".js", ".css") and path.parent.name != "static"
            source = script or "labs/js" in name  # of the bundle
            if path.is_file() and "__pycache__" not in name and not source:
                yield name, path.read_bytes()


def pack(target):
    """Write the zip; two builds of one commit write the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents():
            info = zipfile.ZipInfo(f"{NAME}/{name}", date_time=(2026, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)


if __name__ == "__main__":
    target = ROOT / "_build/notebooks" / f"{NAME}.zip"
    pack(target)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:.1f} MB")
