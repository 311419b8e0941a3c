"""Records of every recorder; checksums are taken for right, as who makes one can."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from burnish import Tensor, nn
from burnish import record as r
from burnish.errors import BurnishError, RecordError
from burnish.record import format as formats
from burnish.record import npz, safetensors, text
from tests.fuzz.changes import changed_bytes, changed_json
from tests.fuzz.harness import Files as Held
from tests.fuzz.harness import one_line

RECORDERS = tuple(getattr(r, name) for name in r.__all__ if name.endswith("Recorder"))
WITHOUT = tuple(each for each in RECORDERS if each is not r.Recorder)


class Files:
    """One record; its name says which recorder reads it."""

    def __init__(self) -> None:
        self.network = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))

    def seeds(self) -> list[Any]:
        rng = np.random.default_rng(0)
        items = [
            self.network,
            {"a": rng.normal(size=(2, 3)), "b": [1, 2.5, None, "é", True], "c": {}},
            {"half": np.ones(3, np.float16), "int": np.arange(4), "no": np.zeros(0)},
            {"deep": {"er": [{"x": Tensor([1.0, 2.0])}, [[], [1]]]}},
        ]
        precisions = (None, "half", "double")
        return [
            (type(recorder).__name__, recorder.to_bytes(item))
            for item in items
            for kind in WITHOUT
            for recorder in map(kind, precisions)
        ]

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        name, data = rng.choice(seeds)
        return {name: _changed(data, rng)}

    def attempt(self, folder: Path, _out: Path) -> str:
        (path,) = folder.iterdir()
        with ExitStack() as patches:
            for module in (formats, npz, safetensors, text):
                patches.enter_context(patch.object(module, "check_sum"))
            return self._loaded(getattr(r, path.name)(), path.read_bytes())

    def _loaded(self, recorder: r.Recorder, data: bytes) -> str:
        went = "read"
        try:
            recorder.load(data)
        except RecordError as error:
            went = "refused"
            one_line(error)
        try:
            recorder.load_into(self.network, data, strict=False)
        except BurnishError:
            return went
        return "loaded"


def _changed(data: bytes, rng: random.Random) -> bytes:
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.8:
        return gzip.compress(_changed(gzip.decompress(data), rng), 1)
    if data[:1] == b"{" and rng.random() < 0.8:
        return changed_json(data, rng)
    if data[:2] == b"PK" and rng.random() < 0.8:
        return _rezipped(data, rng)
    return changed_bytes(data, rng)


def _rezipped(data: bytes, rng: random.Random) -> bytes:
    """The archive with changed members, or members of other names."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if rng.random() < 0.5:
                raw = (changed_json if raw[:1] == b"{" else changed_bytes)(raw, rng)
            if rng.random() < 0.1:
                name = rng.choice(("../x", "/x", "", name + "x", "burnish.json", "é"))
            new.writestr(zipfile.ZipInfo(name), raw)
        new.comment = old.comment
    return out.getvalue()
