"""attn_lib as a package: what sdist and wheel hold, what an import needs, what is pinned."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import attn_lib

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "attn_lib"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LISTS = ("requirements.txt", "tests/requirements.txt")
BUILT = ("__pycache__", "node_modules")


def run(*command, cwd=ROOT):
    """Run a command; return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- sdist and wheel ------------------------------------------------------------------------------
def pack(what, source, target):
    """Build an sdist or a wheel as a package index's tools do, and return its path."""
    code = f"import sys; from setuptools.build_meta import {what} as f; print(f(sys.argv[1]))"
    name = run(sys.executable, "-c", code, target, cwd=source).splitlines()[-1]
    return target / name


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Return an unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    ignore = shutil.ignore_patterns(".git", ".venv", "_build", *BUILT, "*.egg-info", "build")
    source = shutil.copytree(ROOT, folder / "source", ignore=ignore)
    with tarfile.open(pack("build_sdist", source, folder)) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"attn_lib-{PROJECT['version']}"


@pytest.fixture(scope="module")
def wheel(sdist):
    """Return a folder with what a wheel made of the sdist installs."""
    folder = sdist.parent / "installed"
    with zipfile.ZipFile(pack("build_wheel", sdist, sdist.parent)) as archive:
        archive.extractall(folder)
    return folder


def files(folder, *patterns):
    """Return the names of files below a folder, without what is built there."""
    paths = [path for pattern in patterns for path in folder.rglob(pattern)]
    inside = [path.relative_to(folder) for path in paths if path.is_file()]
    return {path.as_posix() for path in inside if not set(BUILT) & set(path.parts)}


def test_sdist_holds_all_of_the_library_and_no_tests(sdist):
    assert files(sdist / "attn_lib", "*") == files(LIBRARY, "*")
    assert not (sdist / "tests").exists()
    assert not (sdist / "book").exists()
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        assert (sdist / name).is_file()


def test_wheel_holds_python_data_and_bundle_and_no_source_of_it(wheel):
    held = files(wheel / "attn_lib", "*")
    static = {f"labs/static/{path.name}" for path in (LIBRARY / "labs/static").iterdir()}
    source = {name for name in files(LIBRARY, "*.py", "*.json") if "labs/js/" not in name}
    assert held == source | static | {"py.typed"}
    assert {path.name for path in wheel.iterdir()} == {
        "attn_lib",
        f"attn_lib-{PROJECT['version']}.dist-info",
    }


# --- what an import needs -------------------------------------------------------------------------
ALONE = """
import sys
import numpy

class Only:
    def find_spec(self, name, path=None, target=None):
        allowed = sys.stdlib_module_names | {"attn_lib", "numpy", *sys.argv[2:]}
        if name.split(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Only())
sys.path.insert(0, sys.argv[1])
"""


def test_wheel_works_with_numpy_alone(wheel):
    code = """
import attn_lib, attn_lib.minilm, attn_lib.checks, attn_lib.training, attn_lib.book
assert attn_lib.__file__.startswith(sys.argv[1])
print(attn_lib.self_attention(*[numpy.eye(2)] * 4).output.shape)
"""
    assert run(sys.executable, "-c", ALONE + code, wheel).strip() == "(2, 2)"


@pytest.mark.parametrize(
    ("statement", "allowed", "lacks", "extra"),
    [
        ("import attn_lib.labs", [], "anywidget", "labs"),
        ("import attn_lib.figures", [], "matplotlib", "book"),
        ("import attn_lib.proofs", [], "sympy", "book"),
        ("from attn_lib.training import start, train; train(start('copy'), 1)", [], "tqdm", "book"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(wheel, statement, allowed, lacks, extra):
    code = f"{ALONE}\ntry:\n    {statement}\nexcept ModuleNotFoundError as error:\n    print(error)"
    said = run(sys.executable, "-c", code, wheel, *allowed)
    assert said.strip() == f"No module named '{lacks}': pip install 'attn_lib[{extra}]'"
    needs = {Requirement(line).name for line in PROJECT["optional-dependencies"][extra]}
    assert lacks in needs


def test_version_and_types_are_told():
    assert distribution("attn_lib").version == PROJECT["version"]
    assert (Path(attn_lib.__file__).parent / "py.typed").exists()


# --- what is pinned -------------------------------------------------------------------------------
def requirements(name):
    """Return the requirements of a list."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [
        Requirement(line.split("#")[0])
        for line in lines
        if line and not line.startswith(("#", "-"))
    ]


def listed():
    """Return what both lists ask for."""
    return [need for name in LISTS for need in requirements(name)]


def pins():
    """Return the pinned version of each package, by its canonical name."""
    return {
        canonicalize_name(need.name): str(need.specifier)
        for need in requirements("constraints.txt")
    }


def brought(need):
    """Yield what a requirement brings along in this environment, itself first."""
    yield need
    for line in distribution(need.name).requires or []:
        more = Requirement(line)
        if not more.marker or any(more.marker.evaluate({"extra": e}) for e in need.extras or {""}):
            yield more


def test_every_package_of_the_environment_is_pinned():
    waiting = [Requirement("attn_lib[labs,book]"), *listed()]
    seen = {}
    while waiting:
        need = waiting.pop()
        known = seen.setdefault(canonicalize_name(need.name), set())
        if not known or need.extras - known:
            known |= need.extras | {""}
            waiting += brought(need)
    assert set(seen) - set(pins()) == {"attn-lib"}
    assert len(seen) > 100
    assert all(re.fullmatch(r"==[\w.]+", version) for version in pins().values())


def test_pins_satisfy_the_ranges():
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    own = [Requirement(line) for lines in lists for line in lines]
    pinned = pins()
    for need in [*own, *listed()]:
        version = pinned.get(canonicalize_name(need.name), "").removeprefix("==")
        assert not version or need.specifier.contains(version), need


def test_requirements_give_a_reason_each():
    for name in LISTS:
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith(("#", "-", "pytest")):
                assert re.match(r"[\w-]+(<\d)? +# .", line), line
