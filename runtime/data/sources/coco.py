"""COCO's annotations of objects in pictures (cocodataset.org/#format-data)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from burnish._files import jsontext
from burnish._files.inside import inside
from burnish._files.shown import shown
from burnish.errors import RecordError

Path = str | os.PathLike[str]

_LONGEST_SIDE = 1e9  # pixels


def read_coco(
    annotations: Path, images: Path
) -> tuple[list[tuple[str, dict[str, np.ndarray]]], list[str]]:
    """(picture, {"boxes", "labels"}) for every picture, and the names of the classes.

    boxes: float32 (n, 4), x and y of the upper left corner, width, height, in pixels;
    labels: int64 (n,), places in the classes, which are in order of their ids.
    """
    where = os.fspath(annotations)
    content = _content(where)
    categories = sorted(
        (_number(where, "category", each, "id"), each.get("name", ""))
        for each in content["categories"]
    )
    labels = {number: place for place, (number, _) in enumerate(categories)}
    pictures = {
        _number(where, "image", each, "id"): _picture(where, each, images)
        for each in content["images"]
    }
    boxes: dict[int, list[Any]] = {number: [] for number in pictures}
    for each in content["annotations"]:
        picture = _number(where, "annotation", each, "image_id")
        category = _number(where, "annotation", each, "category_id")
        annotation = f"{where}: annotation {each.get('id', '?')}"
        if picture not in boxes:
            raise RecordError(
                f"{annotation}: expected the id of an image, got {picture}"
            )
        if category not in labels:
            raise RecordError(
                f"{annotation}: expected a category id out of {sorted(labels)}, got "
                f"{category}"
            )
        boxes[picture].append((_box(annotation, each), labels[category]))
    return [(path, _annotation(boxes[number])) for number, path in pictures.items()], [
        name for _, name in categories
    ]


def _content(where: str) -> dict[str, Any]:
    content = jsontext.read(where)
    for key in ("images", "annotations", "categories"):
        value = content.get(key) if isinstance(content, dict) else None
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise RecordError(
                f"{where}: expected a list of objects under {key!r}, got "
                f"{type(value).__name__}"
            )
    return content


def _number(where: str, what: str, entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int):
        raise RecordError(
            f"{where}: expected a whole number as {key!r} of {what} "
            f"{entry.get('id', '?')}, got {value!r}"
        )
    return value


def _picture(where: str, entry: dict[str, Any], images: Path) -> str:
    name = entry.get("file_name")
    if not isinstance(name, str):
        raise RecordError(
            f"{where}: expected 'file_name' of image {entry.get('id')}, got {name!r}"
        )
    path = inside(images, name, where)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{path}: expected a picture, which {where} names, got nothing"
        )
    return path


def _box(annotation: str, entry: dict[str, Any]) -> list[float]:
    box: Any = entry.get("bbox")
    right = isinstance(box, list) and len(box) == 4
    if not right or not all(map(_is_side, box)):
        raise RecordError(
            f"{annotation}: expected four numbers as 'bbox', got {shown(box)}"
        )
    sides: list[float] = box
    return sides


def _is_side(side: Any) -> bool:
    return isinstance(side, int | float) and abs(side) < _LONGEST_SIDE


def _annotation(found: list[Any]) -> dict[str, np.ndarray]:
    boxes = np.array([box for box, _ in found], np.float32).reshape(-1, 4)
    return {"boxes": boxes, "labels": np.array([n for _, n in found], np.int64)}
