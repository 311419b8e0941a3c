"""Folders and lists of pictures for classification, segmentation and detection."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from burnish.data.dataset import in_range
from burnish.data.sources.folders import labelled_files
from burnish.data.sources.picture import (
    ENDINGS,
    Size,
    picture_size,
    read_mask,
    read_picture,
)
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]
Annotated = tuple[str, Any]


class ImageFolderDataset:
    """Pictures with annotations to learn from: items are (image, annotation).

    image: uint8 (height, width, channels), read when asked for; annotation: see the
    four makers. size: (height, width) that all pictures, masks and boxes are brought
    to; mode: one of Pillow's.
    """

    def __init__(
        self,
        items: Sequence[Annotated],
        classes: Sequence[str],
        *,
        size: Size | None = None,
        mode: str = "RGB",
    ):
        self.items = items
        self.classes = list(classes)
        self.size = size
        self.mode = mode

    @classmethod
    def classification(cls, root: Path, **options: Any) -> ImageFolderDataset:
        """A folder with one folder of pictures a class; annotation: int64 ()."""
        items, classes = labelled_files(root, ENDINGS)
        return cls([(p, np.int64(label)) for p, label in items], classes, **options)

    @classmethod
    def multilabel(
        cls,
        items: Iterable[tuple[Path, Iterable[str]]],
        classes: Sequence[str],
        **options: Any,
    ) -> ImageFolderDataset:
        """(picture, names of its classes); annotation: int64 (classes,) of 0 and 1."""
        places = {name: place for place, name in enumerate(classes)}
        found = []
        for path, names in items:
            wanted = list(names)
            if unknown := [name for name in wanted if name not in places]:
                raise InputError(
                    f"{os.fspath(path)}: expected labels out of {list(classes)}, got "
                    f"{unknown[0]!r}"
                )
            labels = np.zeros(len(places), np.int64)
            labels[[places[name] for name in wanted]] = 1
            found.append((_there(path, "a picture"), labels))
        return cls(found, classes, **options)

    @classmethod
    def segmentation(
        cls,
        items: Iterable[tuple[Path, Path]],
        classes: Sequence[str],
        *,
        ignore: int | None = 255,
        **options: Any,
    ) -> ImageFolderDataset:
        """(picture, mask); annotation: int64 (height, width), a class for each pixel.

        ignore: a value of masks that is no class.
        """
        found = [
            (
                _there(picture, "a picture"),
                _Mask(_there(mask, f"the mask of {os.fspath(picture)}"), ignore),
            )
            for picture, mask in items
        ]
        return cls(found, classes, **options)

    @classmethod
    def coco(cls, annotations: Path, images: Path, **options: Any) -> Any:
        """COCO's JSON file and folder; annotation: a dict, see `read_coco`."""
        from burnish.data.sources.coco import read_coco

        found, classes = read_coco(annotations, images)
        return cls([(p, _Boxes(a)) for p, a in found], classes, **options)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int, /) -> tuple[np.ndarray, Any]:
        path, annotation = self.items[in_range(index, self)]
        image = read_picture(path, mode=self.mode, size=self.size)
        if isinstance(annotation, _Mask | _Boxes):
            return image, annotation.read(path, self.size, len(self.classes))
        return image, annotation


class _Mask:
    def __init__(self, path: str, ignore: int | None):
        self.path = path
        self.ignore = ignore

    def read(self, picture: str, size: Size | None, classes: int) -> np.ndarray:
        mask = read_mask(self.path)
        expected = picture_size(picture)
        if mask.shape != expected:
            raise RecordError(
                f"{self.path}: expected a mask of {expected}, as {picture}, got "
                f"{mask.shape}"
            )
        wrong = mask[(mask >= classes) & (mask != self.ignore) | (mask < 0)]
        if wrong.size:
            raise RecordError(
                f"{self.path}: expected values below {classes}, the number of classes, "
                f"got {wrong[0]}"
            )
        return mask if size is None else read_mask(self.path, size)


class _Boxes:
    def __init__(self, annotation: dict[str, np.ndarray]):
        self.annotation = annotation

    def read(self, picture: str, size: Size | None, classes: int) -> dict[str, Any]:
        if size is None:
            return self.annotation
        height, width = picture_size(picture)
        scale = np.array([size[1] / width, size[0] / height] * 2, np.float32)
        return self.annotation | {"boxes": self.annotation["boxes"] * scale}


def _there(path: Path, what: str) -> str:
    if not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)}: expected {what}, got nothing")
    return os.fspath(path)


def channels_first(images: np.ndarray, *rest: Any) -> tuple[Any, ...]:
    """A batcher: uint8 (n, height, width, channels) to float32 (n, channels, height,
    width) from 0 to 1; what else there is in the batch stays."""
    moved = np.ascontiguousarray(np.moveaxis(images, -1, 1))
    return np.divide(moved, 255, dtype=np.float32), *rest
