"""The counter-based generator of masks: known answers, kernels and shapes."""

import numpy as np
import pytest

import burnish
from burnish import nn, rng
from burnish.backend import Device
from burnish.backend.philox import drawn_mask, mask_bound, words
from burnish.kernels import direct, library, set_num_threads
from burnish.tensor import Tensor

CPU = Device("cpu")

KNOWN = [
    # counter, key, words: Random123's known answers for philox4x32 of 10 rounds
    ((0, 0, 0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF,) * 4, (1 << 64) - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_words_are_the_published_ones(counter, key, expected):
    made = words(np.array(counter).reshape(4, 1), key)
    assert [int(word[0]) for word in made] == [int(w, 16) for w in expected.split()]


def test_a_mask_compares_24_bits_of_each_word_in_order():
    key, count = 0x123456789ABCDEF, 1001
    counters = np.zeros((4, 251), np.uint64)
    counters[0] = np.arange(251)
    drawn = np.stack(words(counters, key), axis=1).reshape(-1)[:count] >> np.uint64(8)
    for share in (0.1, 0.5, 0.9):
        expected = drawn * 2.0**-24 < np.float32(share)
        assert (drawn_mask(count, share, key) == expected).all()


def test_counters_go_on_in_the_second_word():
    first = np.array([[(1 << 32) - 1, 0], [0, 1], [0, 0], [0, 0]])
    made = np.stack(words(first, 7))
    assert (made[:, 0] != made[:, 1]).any()
    assert (made[:, :1] == np.stack(words(first[:, :1], 7))).all()


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 3, 4, 127, 128, 129, 1023, 1024, 1025, 100_003])
@pytest.mark.parametrize("share", [0, 1e-7, 0.1, 0.75, 0.9, 1])
def test_the_kernel_draws_the_same_bits(count, share, parts):
    if library() is None:
        pytest.skip("there are no kernels here")
    key = 0xFEDCBA9876543210 ^ count
    kept = np.full(count + 1, 7, np.uint8)
    direct.launch(
        "keep_mask", parts, key=np.array([key], np.uint64), out=kept, count=count,
        bound=mask_bound(share),
    )  # fmt: skip
    assert kept[-1] == 7
    assert (kept[:-1] == drawn_mask(count, share, key)).all()


def test_masks_are_the_same_without_the_library_and_for_any_number_of_threads(
    monkeypatch,
):
    found = []
    library()
    try:
        for threads in (1, 2, 5, None):
            set_num_threads(threads)
            if threads is None:
                monkeypatch.setattr(direct, "usable", lambda: None)
            burnish.seed(5)
            found.append([rng.keep_mask((300, 701), 0.9, CPU) for _ in range(2)])
    finally:
        set_num_threads(None)
    for masks in found:
        assert all((a == b).all() for a, b in zip(masks, found[0], strict=True))
    first, second = found[0]
    assert abs(first.mean() - 0.9) < 0.003
    assert abs((first & second).mean() - 0.81) < 0.004


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 5)])
def test_masks_have_any_shape(shape):
    for share, expected in ((0.0, False), (1.0, True)):
        kept = rng.keep_mask(shape, share, CPU)
        assert kept.shape == shape
        assert kept.dtype == bool
        assert (kept == expected).all()


LAYERS = [
    (nn.Dropout, (3, 4, 5), (3, 4, 5)),
    (nn.Dropout1d, (3, 40, 5), (3, 40, 1)),
    (nn.Dropout2d, (3, 40, 5, 2), (3, 40, 1, 1)),
    (nn.Dropout3d, (3, 40, 2, 2, 2), (3, 40, 1, 1, 1)),
    (nn.Dropout3d, (40, 2, 2, 2), (40, 1, 1, 1)),
]


@pytest.mark.parametrize(("layer", "shape", "masked"), LAYERS)
def test_dropout_is_its_mask_forward_and_back(layer, shape, masked):
    x = Tensor(np.random.default_rng(0).normal(size=shape), device="cpu:autodiff")
    burnish.seed(1)
    factor = rng.keep_mask(masked, 0.7, CPU) / 0.7
    burnish.seed(1)
    x = x.require_grad()
    y = layer(0.3).train()(x)
    assert y.numpy() == pytest.approx(x.numpy() * factor)
    gradient = x.grad(y.square().sum().backward())
    assert gradient.numpy() == pytest.approx(2 * x.numpy() * factor**2)


def test_all_is_dropped_with_probability_1():
    x = Tensor(np.ones(5, np.float32), device="cpu:autodiff")
    assert (nn.Dropout(1.0).train()(x).numpy() == 0).all()


def test_a_key_is_63_bits_of_the_seeded_generator():
    burnish.seed(7)
    drawn = np.random.default_rng(7).integers(1 << 63, size=100)
    assert [rng.key() for _ in drawn] == drawn.tolist()
