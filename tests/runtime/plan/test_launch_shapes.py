"""How launches on a GPU are cut into blocks and threads, without a GPU."""

import math

import numpy as np
import pytest

from burnish.backend.cuda.convolution import depthwise
from burnish.backend.cuda.decoding import few_rows
from burnish.backend.cuda.norms import residual
from burnish.ops._kernels.window import window


@pytest.mark.parametrize("codes", [4, 8, 16, 32])
@pytest.mark.parametrize("ins", [64, 768, 2048, 3072, 5632])
@pytest.mark.parametrize("blocks", [1, 48, 128, 1571])
def test_every_window_of_a_row_is_loaded_by_one_warp(blocks, ins, codes):
    for tiles in (1, 2):
        for clusters in (False, True):
            parts, depth, turns = few_rows._parts(blocks, ins, codes, tiles, clusters)
            windows = math.ceil(ins / (4 * codes))
            assert parts == 1 or clusters
            assert 8 * parts * depth * turns >= windows
            assert 8 * parts * depth * (turns - 1) < windows


@pytest.mark.parametrize("n", [1, 3, 33, 64, 96, 200, 768, 1000, 4096, 9000, 32768])
def test_the_threads_of_a_row_hold_all_of_it(n):
    for width in (1, 4, 8):
        if n % width:
            continue
        lanes = residual._lanes(n, width)
        assert lanes & (lanes - 1) == 0
        assert 4 <= lanes <= 1024
        turns = math.ceil(n / (lanes * width))
        assert lanes >= 128 or lanes <= 32  # rows of one block, or of one warp
        if width == 8 and residual.fits(n):
            assert turns * width <= residual._MOST


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.parametrize(
    ("c", "size", "kernel", "stride"),
    [(8, 9, 3, 1), (144, 56, 3, 1), (96, 112, 3, 2), (768, 7, 7, 1), (20, 40, 9, 4)],
)
def test_depthwise_tiles_cover_the_result(
    n, c, size, kernel, stride, dtype, monkeypatch
):
    settings = {}

    def kept(template, **values):
        settings.update(values)

    monkeypatch.setattr(depthwise, "kernel", kept)
    monkeypatch.setattr(depthwise, "by_value", np.copy)  # without CuPy
    depthwise._prepared.cache_clear()
    w = window("", (size, size), (kernel, kernel), stride, kernel // 2, 1)
    given = ((size, size), n, np.dtype(dtype), c, w, True, (True, True, False))
    _, blocks, threads, shared, _ = depthwise._prepared(*given)
    depthwise._prepared.cache_clear()
    rows, columns, width = (settings[k] for k in ("rows", "columns", "width"))
    tiles = n * math.ceil(w.out[0] / rows) * math.ceil(w.out[1] / columns)
    assert blocks[0] * threads[1] >= tiles > (blocks[0] - 1) * threads[1]
    assert blocks[1] * threads[0] * width >= c
    assert threads[0] * threads[1] <= 256
    assert c % width == 0
    assert shared <= 48 << 10
