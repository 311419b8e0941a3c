"""Pictures in files' formats to arrays; Pillow reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnish.backend import Array, namespace, on_host
from burnish.errors import InputError
from burnish.operator import operator


@operator
def decode_image(stream, *, pixel_format: str = "RGB") -> Array:
    """The bytes of a picture's file, (bytes,) -> (height, width, channels), uint8

    pixel_format: "RGB", "BGR" or "Grayscale". Needs Pillow.
    """
    mode = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}.get(pixel_format)
    if mode is None:
        raise InputError(
            f"decode_image: expected pixel_format 'RGB', 'BGR' or 'Grayscale', "
            f"got {pixel_format!r}"
        )
    data: Any = on_host(stream).astype(np.uint8, copy=False).tobytes()
    pixels = _pixels(data, mode)
    if pixel_format == "BGR":
        pixels = pixels[:, :, ::-1]
    return namespace(stream).asarray(np.ascontiguousarray(pixels))


def _pixels(data: bytes, mode: str) -> np.ndarray:
    import io

    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError(
            "decode_image: expected the package Pillow; pip install 'burnish[data]'"
        ) from None
    try:
        with Image.open(io.BytesIO(data)) as picture:
            pixels = np.asarray(picture.convert(mode))
    except (UnidentifiedImageError, OSError) as error:
        raise InputError(
            f"decode_image: expected a picture's file, got {len(data)} bytes ({error})"
        ) from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]
