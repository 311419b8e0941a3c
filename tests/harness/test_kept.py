from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from functools import partial

import pytest

from tests.harness import kept
from tests.harness.kept import fingerprint

SETS = """
from tests.harness.kept import fingerprint
from tests.harness.test_kept import adding
print(fingerprint([{"a", "b", "c"}, adding(2)]))
"""


def adding(number):
    return lambda x: x + number


def subtracting(number):
    return lambda x: x - number


def on_one_line():
    return lambda x: x + 1, lambda x: x + 2


def holding(**held):
    return type("A", (), held)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    place = tmp_path / "kept"
    place.mkdir()
    monkeypatch.setattr(kept, "FOLDER", place)
    return place


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (adding(1), adding(1), True),
        (adding(1), adding(2), False),
        (adding(1), subtracting(1), False),
        ([adding(1)], (adding(1),), False),
        ({"a", "b"}, {"b", "a"}, True),
        (partial(adding, 1), partial(adding, 2), False),
        (*on_one_line(), False),
        (holding(f=adding(1)), holding(f=adding(1)), True),
        (holding(f=adding(1)), holding(f=adding(2)), False),
        (holding(f=staticmethod(adding(1))), holding(f=staticmethod(adding(2))), False),
        (holding(f=property(adding(1))), holding(f=property(adding(2))), False),
        (holding(scale=1), holding(scale=1), True),
        (holding(scale=1), holding(scale=2), False),
        (type("A", (list,), {}), type("A", (dict,), {}), False),
    ],
)
def test_equal_code_and_closures_have_one_fingerprint(one, other, equal):
    assert fingerprint(one)
    assert (fingerprint(one) == fingerprint(other)) is equal


def test_what_cannot_be_pickled_has_no_fingerprint():
    assert fingerprint(threading.Lock()) is None


def test_every_process_finds_the_same():
    found = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_constants_of_other_modules_count(monkeypatch, tmp_path):
    """A network's module that takes a number from another depends on that one."""
    monkeypatch.setattr(kept, "NETWORKS", (tmp_path,))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "kept_network.py").write_text(
        "from kept_constant import SCALE\n\ndef scaled(x):\n    return SCALE * x\n"
    )
    found = set()
    for scale in (1, 2):
        (tmp_path / "kept_constant.py").write_text(f"SCALE = {scale}")
        network = importlib.import_module("kept_network")
        kept._source.cache_clear()
        found.add(fingerprint(network.scaled))
    for name in ("kept_network", "kept_constant"):
        del sys.modules[name]
    assert len(found - {None}) == 2


def test_a_cache_that_cannot_be_written_is_not_used(tmp_path):
    place = tmp_path / "file"
    place.touch()
    command = [sys.executable, "-m", "pytest", __file__, "-q", "-n0", "-k", "week"]
    done = subprocess.run(
        [*command, "-o", f"cache_dir={place / 'cache'}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.oracle
def test_tensors_without_numbers_have_no_fingerprint():
    import torch

    assert fingerprint(torch.zeros(2, 2).to_sparse()) is None
    assert fingerprint(torch.zeros(2, device="meta")) is None


@pytest.mark.oracle
def test_tied_weights_are_not_equal_weights():
    import torch

    def network(tied, number=1.0):
        first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        for parameter in (*first.parameters(), *second.parameters()):
            torch.nn.init.constant_(parameter, number)
        if tied:
            second.weight = first.weight
        return torch.nn.Sequential(first, second)

    apart = fingerprint(network(tied=False))
    assert apart == fingerprint(network(tied=False))
    assert apart != fingerprint(network(tied=True))
    assert apart != fingerprint(network(tied=False, number=2.0))
    assert apart != fingerprint(network(tied=False).eval())
    assert apart != fingerprint(network(tied=False).double())


@pytest.mark.parametrize("may_be_kept", [True, False])
def test_files_are_made_once(folder, tmp_path, may_be_kept):
    made = []

    def make(path):
        made.append(path)
        path.write_text("text")
        path.with_name(f"{path.name}.data").write_text("data")
        return may_be_kept

    for name in ("one", "other"):
        place = tmp_path / name
        place.mkdir()
        path = place / "net.onnx"
        assert kept.kept("of", path, partial(make, path)) == path
        assert path.read_text() == "text"
        assert (place / "net.onnx.data").read_text() == "data"
    assert len(made) == (1 if may_be_kept else 2)
    kept.kept("another", path, partial(make, path))
    assert path in made


def test_what_nobody_used_for_a_week_is_removed(folder):
    for name, age in (("new", 0), ("old", kept.WEEK + 1)):
        (folder / name).mkdir()
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))
    kept.discard_old()
    assert [entry.name for entry in folder.iterdir()] == ["new"]
