"""Files of data: annotations, JSON lines, CSV, SQLite, IDX, configurations, schemes."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burnish import data
from burnish.config import Config
from burnish.data.sources.coco import read_coco
from burnish.errors import BurnishError
from burnish.lowbit.scheme import QuantScheme
from tests.fuzz.changes import changed_bytes, changed_json
from tests.fuzz.harness import Files as Held
from tests.fuzz.harness import one_line

COCO = {
    "images": [{"id": i, "file_name": f"{i}.png", "width": 4} for i in (1, 2)],
    "annotations": [
        {"id": i, "image_id": i, "category_id": 7, "bbox": [0, 1, 2.5, 3]}
        for i in (1, 2)
    ],
    "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": "dog"}],
}


@dataclass(frozen=True)
class Sizes(Config):
    width: int = 3
    rate: float = 0.5
    names: tuple[str, ...] = ("a", "b")
    table: dict[str, int] | None = None


class Files:
    """One file; its name says what reads it."""

    def seeds(self) -> list[Any]:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, "rows.sqlite")
            with data.SqliteWriter(path) as writer:
                for i in range(3):
                    row = {"x": np.ones((2, i)), "n": i, "t": "a", "j": [1, {"a": 2}]}
                    writer.write(row, split="train")
            rows = path.read_bytes()
        idx = struct.pack(">4B2I", 0, 0, 8, 2, 2, 3) + bytes(range(6))
        lines = b"".join(
            json.dumps({"a": i, "b": [None]}).encode() + b"\n" for i in (1, 2)
        )
        scheme = QuantScheme().to_text((2, 32), "float32").encode()
        return [
            {"coco.json": json.dumps(COCO).encode(), "1.png": b"", "2.png": b""},
            {"rows.jsonl": lines},
            {"rows.csv": b'a,b\n1,"x"\n2,"y, z"\n'},
            {"rows.sqlite": rows},
            {"rows.idx": idx},
            {"sizes.json": Sizes(table={"a": 1}).to_bytes()},
            {"scheme.json": scheme},
        ]

    def case(self, rng: random.Random, seeds: list[Any]) -> Held:
        files = dict(rng.choice(seeds))
        name = next(iter(files))
        is_tree = name.endswith(".json") and rng.random() < 0.8
        files[name] = (changed_json if is_tree else changed_bytes)(files[name], rng)
        return files

    def attempt(self, folder: Path, _out: Path) -> str:
        (path,) = (each for each in folder.iterdir() if each.suffix != ".png")
        try:
            READERS[path.name](path)
        except BurnishError as error:
            one_line(error)
            return "refused"
        except FileNotFoundError:
            if path.name != "coco.json":
                raise
            return "a picture is not there"
        return f"read {path.name}"


READERS: dict[str, Any] = {
    "coco.json": lambda path: read_coco(path, path.parent),
    "rows.jsonl": data.read_json_lines,
    "rows.csv": data.read_csv,
    "rows.sqlite": lambda path: list(data.SqliteDataset(path, split="train")),
    "rows.idx": data.read_idx,
    "sizes.json": Sizes.load,
    "scheme.json": lambda path: QuantScheme.from_bytes(
        np.frombuffer(path.read_bytes(), np.uint8)
    ),
}
