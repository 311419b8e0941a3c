"""Pictures from files, read by Pillow."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from burnish.errors import InputError, RecordError

ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
Size = tuple[int, int]


def read_picture(
    source: str | os.PathLike[str] | bytes,
    *,
    mode: str = "RGB",
    size: Size | None = None,
    where: str = "a picture",
) -> np.ndarray:
    """A picture as uint8 (height, width, channels); grey ones have one channel.

    source: a path, or the bytes of a file, which `where` names in messages; mode: one
    of Pillow's, such as "RGB", "RGBA" or "L"; size: (height, width) to resize to. The
    camera's orientation is applied. Raises RecordError when the file is damaged.
    """
    picture = _opened(source, where)
    _pillow("ImageOps").exif_transpose(picture, in_place=True)
    if picture.mode != mode:
        picture = picture.convert(mode)
    pixels = np.asarray(_resized(picture, size, "BILINEAR"))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def read_mask(source: str | os.PathLike[str], size: Size | None = None) -> np.ndarray:
    """The values of a picture with one channel or a palette, int64 (height, width)."""
    picture = _opened(source, "a mask")
    if len(picture.getbands()) != 1:
        raise RecordError(
            f"{os.fspath(source)}: expected a mask with one channel, got {picture.mode}"
        )
    return np.asarray(_resized(picture, size, "NEAREST")).astype(np.int64)


def picture_size(path: str | os.PathLike[str]) -> Size:
    """(height, width) of a picture as `read_picture` gives it, from its first bytes."""
    image = _pillow("Image")
    try:
        with image.open(path) as picture:
            width, height = picture.size
            turned = picture.getexif().get(0x0112, 1) > 4
    except OSError as error:
        raise _damage(os.fspath(path), error) from None
    return (width, height) if turned else (height, width)


def _opened(source: str | os.PathLike[str] | bytes, where: str) -> Any:
    file: Any = source
    if isinstance(source, bytes):
        file = io.BytesIO(source)
    else:
        where = os.fspath(source)
    image = _pillow("Image")
    try:
        with image.open(file) as picture:
            picture.load()
            return picture.copy()
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise _damage(where, error) from None


def _damage(where: str, error: Exception) -> RecordError:
    return RecordError(f"{where}: expected a whole picture, got damage: {error}")


def _resized(picture: Any, size: Size | None, how: str) -> Any:
    if size is None or size == picture.size[::-1]:
        return picture
    height, width = size
    return picture.resize((width, height), getattr(_pillow("Image").Resampling, how))


def _pillow(module: str) -> Any:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise InputError(
            "images: expected the package Pillow; pip install 'burnish[data]'"
        ) from None
    return getattr(PIL, module)
