"""Small projects, built and installed with every backend; no index is asked.

The backends run in this environment: what is not installed is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from burnish.codegen.errors import UsageError
from burnish.codegen.project import tables, update, wrapper
from tests.harness.projects import net, project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not entry_points(group="hatch", name="burnish"),
        reason="Burnish's entry points are not registered: install it again",
    ),
]

WRAPPED = "burnish.codegen.project.wrapper"

#: By name: what it needs, the backend, and more lines of pyproject.toml.
BACKENDS = {
    "hatchling": (
        "hatchling",
        "hatchling.build",
        '[tool.hatch.build.targets.wheel]\npackages = ["src/my_app"]\n'
        "[tool.hatch.build.hooks.burnish]\n",
    ),
    "setuptools": ("setuptools", "setuptools.build_meta", ""),
    "uv_build": ("uv_build", WRAPPED, '[tool.burnish]\nbackend = "uv_build"\n'),
    "flit": ("flit_core", WRAPPED, '[tool.burnish]\nbackend = "flit_core.buildapi"\n'),
    "pdm": ("pdm", WRAPPED, '[tool.burnish]\nbackend = "pdm.backend"\n'),
}

#: Hooks as folder:hook, all of which are called; a line names one that failed, behind
#: what it printed. `unpack` puts the sdist of the folder before into another one.
_HOOKS = """
import importlib, os, sys, tarfile, traceback
from pathlib import Path
backend = importlib.import_module(sys.argv[1])
for call in sys.argv[2:]:
    folder, _, hook = call.rpartition(":")
    if hook == "unpack":
        (sdist,) = Path("dist").glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (folder,) = Path(folder).iterdir()
    os.chdir(folder or ".")
    os.makedirs("dist", exist_ok=True)
    try:
        if hook != "unpack":
            getattr(backend, hook)("dist")
    except (Exception, SystemExit):
        traceback.print_exc(file=sys.stdout)
        print("failed:", call, flush=True)
"""


def missing(name: str) -> str:
    """Why a backend cannot build here, or nothing."""
    package = BACKENDS[name][0]
    if find_spec(package) is None:
        return f"{package} is not installed: pip install '.[check]'"
    if package == "setuptools" and int(version(package).partition(".")[0]) < 77:
        return "setuptools is older than 77"
    if package == "uv_build" and shutil.which("uv-build") is None:
        return "uv-build is not on the PATH: activate the environment"
    return ""


def needed(name: str) -> tuple[str, str]:
    """The backend and its lines; the test is skipped where it is not installed."""
    if reason := missing(name):
        pytest.skip(reason)
    return BACKENDS[name][1:]


def made(root: Path, name: str, tables: str = "", package: str = "my_app") -> Path:
    """A project that this backend builds."""
    backend, lines = needed(name)
    head = f'[build-system]\nrequires = ["{name}"]\nbuild-backend = "{backend}"\n'
    project(root, tables, head + lines)
    path = root / "pyproject.toml"
    about = 'version = "1.0"\ndescription = "An app."\nrequires-python = ">=3.11"'
    text = path.read_text().replace('version = "1.0"', about, 1)
    if package != "my_app":
        text = text.replace("my_app", package).replace("my-app", package)
        (root / "src" / "my_app").rename(root / "src" / package)
    path.write_text(text)
    return root


def run(*words: str | Path, folder: Path) -> str:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(root: Path, name: str, *hooks: str) -> None:
    """Call hooks of the backend, as a frontend does; files go to dist/."""
    message = called(name, *(f"{root}:{hook}" for hook in hooks), folder=root)
    assert "failed: " not in message, message


def called(name: str, *hooks: str, folder: Path) -> str:
    """What hooks of one process of the backend print."""
    return run(sys.executable, "-c", _HOOKS, BACKENDS[name][1], *hooks, folder=folder)


def packed(root: Path, ending: str) -> Path:
    (found,) = (root / "dist").glob(f"*{ending}")
    return found


USE = """
import numpy as np
from my_app.net import Model
print(Model.from_file()(np.ones((2, 4), np.float32)).shape)
"""


class Built(NamedTuple):
    """What one process of a backend has made of projects.

    One is built from a tree with the generated files already, as after an editable
    installation, and again from its sdist, elsewhere. Of another the generated source
    is edited, of the third the model is not the one that is pinned.
    """

    one: Path
    elsewhere: Path
    edited: Path
    changed: Path
    message: str


@pytest.fixture(scope="module", params=BACKENDS)
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    name, place = request.param, tmp_path_factory.mktemp("built")
    one, edited = made(place / "one" / "app", name), made(place / "edited", name)
    changed = made(place / "changed", name, f'sha256 = "{"0" * 64}"')
    # version control ignores model and generated files
    (one / ".gitignore").write_text("*.onnx\n*.safetensors\nsrc/my_app/net.py\n")
    for root in (one, edited):
        found = tables.read(root)
        update.up_to_date(found, update.modules(found))
    with (edited / "src/my_app/net.py").open("a") as file:
        file.write(EDIT)
    elsewhere = place / "elsewhere"
    hooks = [f"{one}:build_sdist", f"{one}:build_wheel", f"{elsewhere}:unpack"]
    hooks += [":build_wheel", *(f"{edited}:{hook}" for hook in STOPPED)]
    message = called(name, *hooks, f"{changed}:build_wheel", folder=place)
    (again,) = elsewhere.iterdir()
    return Built(one, again, edited, changed, message)


EDIT = "\n# mine\n"
STOPPED = ("build_wheel", "build_sdist", "build_editable")


def test_sdist_and_wheel(built: Built, tmp_path: Path) -> None:
    """The sdist has the model and nothing generated; wheels have equal bytes."""
    with tarfile.open(packed(built.one, ".tar.gz")) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    assert {"assets/net.onnx", "src/my_app/__init__.py", "pyproject.toml"} <= names
    assert not {n for n in names if "net.py" in n or n.endswith(".safetensors")}
    wheel = packed(built.one, ".whl")
    assert wheel.read_bytes() == packed(built.elsewhere, ".whl").read_bytes()
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {"my_app/net.py", "my_app/net.safetensors"} <= held
    assert not {n for n in held if n.endswith(".onnx")}
    code = f"import sys; sys.path.insert(0, {str(wheel)!r}){USE}"
    assert run(sys.executable, "-c", code, folder=tmp_path) == "(2, 3)\n"


def test_a_build_stops_at_edited_source_and_changed_models(built: Built) -> None:
    edited, changed = built.edited, built.changed
    pinned = f"sha256: net.onnx: expected {'0' * 64}, got"
    reasons = {f"{edited}:{hook}": "burnish generate --merge" for hook in STOPPED}
    reasons[f"{changed}:build_wheel"] = pinned
    message = built.message
    for call, reason in reasons.items():
        of_call, failed, message = message.partition(f"failed: {call}\n")
        assert failed
        assert "failed: " not in of_call
        assert reason in of_call
    assert (edited / "src/my_app/net.py").read_text().endswith(EDIT)
    for folder in (edited, changed):
        assert not list((folder / "dist").iterdir())


def test_the_generator_is_imported_where_a_module_is_generated() -> None:
    """Most hooks only hand on what a backend needs; a frontend starts each anew."""
    needed("hatchling")
    code = """
import sys
import burnish.codegen.project.hatch, burnish.codegen.project.wrapper
print(*({"burnish.codegen.pipeline", "burnish.codegen.ops", "onnx"} & {*sys.modules}))
"""
    assert run(sys.executable, "-c", code, folder=Path.cwd()) == "\n"


UV = shutil.which("uv")


@pytest.mark.parametrize(
    ("installer", "mode", "names"),
    [
        ("uv" if UV else "pip", "", [*BACKENDS]),
        ("uv" if UV else "pip", "strict", ["setuptools"]),
        pytest.param(
            *("pip", "", ["flit"]),
            marks=pytest.mark.skipif(not UV, reason="pip has installed every one"),
        ),
    ],
)
def test_editable(installer: str, mode: str, names: list[str], tmp_path: Path) -> None:
    """The modules are generated into the source trees, and imported from there.

    One call installs a project of every backend; pip calls the hooks that uv does. Only
    setuptools has a strict mode.
    """
    names = [name for name in names if not missing(name)]
    if not names:
        pytest.skip("no such backend is installed")
    roots = {
        package: made(tmp_path / package, name, package=package)
        for name, package in ((name, f"{name}_app") for name in names)
    }
    command = {
        "pip": [sys.executable, "-m", "pip", "install", "--no-index"],
        "uv": ["uv", "pip", "install", "--offline", "--python", sys.executable],
    }[installer]
    settings = [f"--config-settings=editable_mode={mode}"] if mode else []
    prefix = tmp_path / "prefix"
    common = ["--no-build-isolation", "--no-deps", f"--prefix={prefix}", *settings]
    editable = [word for root in roots.values() for word in ("-e", str(root))]
    run(*command, *common, *editable, folder=tmp_path)
    (site,) = prefix.glob("lib/python*/site-packages")
    code = f"import site; site.addsitedir({str(site)!r})"
    for package, root in roots.items():
        assert (root / "src" / package / "net.py").is_file()
        code += USE.replace("my_app", package)
    shapes = run(sys.executable, "-c", code, folder=tmp_path)
    assert shapes == "(2, 3)\n" * len(roots)


def test_a_new_package_and_external_weights(tmp_path: Path) -> None:
    """What setuptools did not see when it looked for packages is in the wheel too."""
    root = made(tmp_path, "setuptools")
    net(root / "assets" / "net.onnx", beside=True)
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(text.replace("my_app.net", "my_app.deep.net"))
    build(root, "setuptools", "build_sdist", "build_wheel")
    with tarfile.open(packed(root, ".tar.gz")) as archive:
        assert "my_app-1.0/assets/net.onnx.data" in archive.getnames()
    held = set(zipfile.ZipFile(packed(root, ".whl")).namelist())
    assert {
        f"my_app/deep/{n}" for n in ("__init__.py", "net.py", "net.safetensors")
    } <= held
    assert not (root / "src/my_app/deep").exists()


def test_other_projects_are_built_as_before(tmp_path: Path) -> None:
    """Without tables the plugin does nothing, whatever pyproject.toml says else."""
    needed("setuptools")
    (tmp_path / "plain.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "plain"\nversion = "1.0"\n[tool.burnished]\nmodel = 1\n'
        '[tool.setuptools]\npy-modules = ["plain"]\n'
    )
    build(tmp_path, "setuptools", "build_sdist", "build_wheel")
    assert "plain.py" in zipfile.ZipFile(packed(tmp_path, ".whl")).namelist()


def test_the_wrapper_needs_to_know_what_it_wraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path, "flit")
    monkeypatch.chdir(root)
    path = root / "pyproject.toml"
    whole = path.read_text()
    path.write_text(whole.replace('backend = "flit_core.buildapi"', "", 1))
    expected = re.escape("[tool.burnish]: backend: expected the backend that builds")
    with pytest.raises(UsageError, match=expected):
        wrapper.build_wheel("dist")
    path.write_text(whole.replace("flit_core.buildapi", "no.such"))
    with pytest.raises(UsageError, match=r"expected a module, got 'no\.such'"):
        wrapper.build_wheel("dist")


def test_hatch_clean_removes_what_was_generated(tmp_path: Path) -> None:
    """Source that its user has edited stays, with its weights."""
    root = made(tmp_path / "app", "hatchling")
    build(root, "hatchling", "build_wheel")
    source = root / "src/my_app/net.py"
    weights = source.with_suffix(".safetensors")
    text = source.read_text()
    for edited in (True, False):
        source.write_text(text + "\nMINE = 1\n" if edited else text)
        assert weights.exists()
        run(sys.executable, "-m", "hatchling", "build", "--clean-only", folder=root)
        assert source.exists() == weights.exists() == edited
        assert (root / "src/my_app/__init__.py").exists()
        assert (root / "assets/net.onnx").exists()
