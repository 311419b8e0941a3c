"""Pictures' files to arrays."""

import io
import sys

import numpy as np
import pytest

from burnish import Tensor, ops
from burnish.errors import InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)


@pytest.fixture
def stream():
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(PIXELS).save(file, "png")
    return np.frombuffer(file.getvalue(), np.uint8)


def test_channels_come_in_the_order_asked_for(stream):
    assert (ops.decode_image(stream) == PIXELS).all()
    assert (ops.decode_image(stream, pixel_format="BGR") == PIXELS[:, :, ::-1]).all()
    gray = ops.decode_image(Tensor(stream), pixel_format="Grayscale")
    assert gray.shape == (5, 4, 1)
    assert gray.dtype == np.uint8


def test_what_is_no_picture_is_refused(stream):
    with pytest.raises(InputError, match="got 10 bytes"):
        ops.decode_image(stream[:10])
    with pytest.raises(InputError, match="'BGR' or 'Grayscale'"):
        ops.decode_image(stream, pixel_format="CMYK")


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"pip install 'burnish\[data\]'"):
        ops.decode_image(np.zeros(3, np.uint8))
