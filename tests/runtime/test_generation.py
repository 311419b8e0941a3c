"""The choice of tokens beside transformers', and memory beside its absence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn
from burnish.errors import InputError
from burnish.generation import Cache, drawn, filtered, generate

CHOICES = [
    {"temperature": 0.5},
    {"top_k": 1},
    {"top_k": 7},
    {"top_k": 200},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"temperature": 1.7, "top_k": 20, "top_p": 0.6},
]


@pytest.mark.oracle("transformers")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_tokens_left_are_those_that_transformers_leaves(
    choice: dict[str, Any],
) -> None:
    import torch
    from transformers import LogitsProcessorList
    from transformers.generation import logits_process as theirs

    logits = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32) * 3
    steps = LogitsProcessorList()
    if "temperature" in choice:
        steps.append(theirs.TemperatureLogitsWarper(choice["temperature"]))
    if "top_k" in choice:
        steps.append(theirs.TopKLogitsWarper(choice["top_k"]))
    if "top_p" in choice:
        steps.append(theirs.TopPLogitsWarper(choice["top_p"]))
    expected = steps(torch.zeros((4, 1), dtype=torch.long), torch.tensor(logits))
    np.testing.assert_allclose(filtered(logits, **choice), expected.numpy(), 1e-6)


def test_tokens_are_drawn_by_their_probability() -> None:
    burnish.seed(0)
    shares = np.array([0.5, 0.0, 0.3, 0.2])
    with np.errstate(divide="ignore"):
        logits = np.log(np.tile(shares, (20_000, 1))).astype(np.float32)
    counts = np.bincount(drawn(logits), minlength=4) / 20_000
    np.testing.assert_allclose(counts, shares, atol=0.02)
    assert counts[1] == 0


def test_a_cache_grows_and_keeps_what_it_was_given() -> None:
    cache, owner, other = Cache(), nn.Identity(), nn.Identity()
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(2, 3, 40, 4)).astype(np.float32)
    for start, stop in ((0, 1), (1, 17), (17, 18), (18, 40)):
        part = Tensor(whole[:, :, start:stop])
        k, v = cache.extend(owner, part, part * 2)
        np.testing.assert_array_equal(k, whole[:, :, :stop])
        np.testing.assert_array_equal(v, whole[:, :, :stop] * 2)
    assert cache.length == 40
    assert [cache.keep(other, lambda n=n: n) for n in (1, 2)] == [1, 1]


class Next(nn.Module):
    """Says that the token after t is t + 1."""

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        return (ids[:, -1:] + 1).one_hot(12, dtype="float32")


def test_rows_end_at_eos_and_are_filled_up() -> None:
    ids = [[1, 2], [6, 7]]
    assert generate(Next(), ids, 3).tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    found = generate(Next(), ids, 8, eos=9, pad=0).tolist()
    assert found == [[1, 2, 3, 4, 5, 6, 7, 8, 9], [6, 7, 8, 9, 0, 0, 0, 0, 0]]
    found = generate(Next(), ids, 8, eos=[4, 8]).tolist()
    assert found == [[1, 2, 3, 4], [6, 7, 8, 4]]
    assert generate(Next(), ids, 0).tolist() == ids


def test_a_sampled_text_is_the_seed_s() -> None:
    def write(seed: int) -> Any:
        burnish.seed(seed)
        return generate(Next(), [[1]], 8, do_sample=True, temperature=9.0).tolist()

    assert write(3) == write(3)
    assert write(3) != write(4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 0},
        {"top_k": 0},
        {"top_p": 0},
        {"top_p": 1.5},
        {"attention_mask": [[1, 0]]},
        {"attention_mask": [[1]]},
    ],
    ids=str,
)
def test_what_cannot_be_chosen_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        generate(Next(), [[1, 2]], 3, **wrong)
    with pytest.raises(InputError, match="token ids"):
        generate(Next(), [1, 2], 3)


def test_unknown_options_are_named() -> None:
    with pytest.raises(InputError, match=r"among do_sample, .*, got max_length, topk"):
        generate(nn.Identity(), [[1, 2]], topk=3, max_length=9)


def test_ragged_prompts_are_explained() -> None:
    with pytest.raises(InputError, match=r"of one length .* pad .* at the left"):
        generate(nn.Identity(), [[1, 2], [3]])


@pytest.mark.parametrize(
    ("ids", "mask", "new", "report"),
    [
        ([[1, 2, 3]], None, 6, r"8 positions .* got 3 \+ 6 = 9; .*\(3 tokens\).*\(6\)"),
        ([[1] * 9], None, 0, r"got 9 \+ 0 = 9"),
        ([[0, 0, 3], [0, 2, 3]], [[0, 0, 1], [0, 1, 1]], 7, r"got 2 \+ 7 = 9"),
    ],
)
def test_a_text_longer_than_the_positions_is_refused_first(
    ids: Any, mask: Any, new: int, report: str
) -> None:
    with pytest.raises(
        InputError, match=report
    ):  # before the model is called: it cannot
        generate(nn.Identity(), ids, new, attention_mask=mask, positions=8)


def test_a_text_as_long_as_the_positions_is_written() -> None:
    assert generate(Next(), [[1, 2, 3]], 5, positions=8).shape == (1, 8)
