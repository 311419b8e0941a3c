"""Check numbers: seeded inputs, and what onnxruntime makes of them.

Inputs are drawn from RandomState, whose numbers are the same in every NumPy. Of each
output at most 4,096 elements are kept, at equal distances, with shape and scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState

from burnish.models._gallery import ENTRIES, Entry, original

Feed = dict[str, np.ndarray]
KEPT = 4096


@dataclass(frozen=True)
class Digest:
    """An output, or what is kept of it."""

    shape: tuple[int, ...]
    scale: float  #: the largest magnitude of all elements
    sample: np.ndarray

    @classmethod
    def of(cls, output: np.ndarray) -> Digest:
        step = -(-output.size // KEPT)
        scale = float(np.abs(output).max())
        return cls(output.shape, scale, output.reshape(-1)[::step])


def feeds(folder: str) -> list[Feed]:
    """The inputs of each call."""
    return _FEEDS[folder](RandomState(0))


def expected(entry: Entry) -> list[dict[str, Digest]]:
    """What onnxruntime gave, for each call every output by its name."""
    calls: list[dict[str, Digest]] = [{} for _ in feeds(entry.folder)]
    with np.load(entry.numbers) as stored:
        for key in stored.files:
            module, call, output, part = key.split("/")
            if module == entry.module and part == "sample":
                at = f"{module}/{call}/{output}"
                calls[int(call)][output] = Digest(
                    tuple(map(int, stored[f"{at}/shape"])),
                    float(stored[f"{at}/scale"]),
                    stored[key],
                )
    return calls


def difference(
    outputs: Mapping[str, np.ndarray], digests: Mapping[str, Digest]
) -> float:
    """The largest one, relative to the largest magnitude of its output.

    Infinite when names or shapes differ.
    """
    if outputs.keys() != digests.keys():
        return float("inf")
    worst = 0.0
    for name, digest in digests.items():
        found = Digest.of(outputs[name])
        if found.shape != digest.shape:
            return float("inf")
        apart = np.abs(found.sample.astype(np.float64) - digest.sample).max()
        worst = max(worst, float(apart / digest.scale))
    return worst


def write(folder: str) -> None:
    """Ask onnxruntime and write `check.npz`."""
    import onnxruntime

    stored: dict[str, Any] = {}
    entries = [entry for entry in ENTRIES if entry.folder == folder]
    for entry in entries:
        session = onnxruntime.InferenceSession(
            original(entry), providers=["CPUExecutionProvider"]
        )
        names = [output.name for output in session.get_outputs()]
        for call, feed in enumerate(feeds(folder)):
            for name, output in zip(names, session.run(names, feed), strict=True):
                digest = Digest.of(output)
                at = f"{entry.module}/{call}/{name}"
                stored[f"{at}/shape"] = np.array(digest.shape)
                stored[f"{at}/scale"] = np.float32(digest.scale)
                stored[f"{at}/sample"] = digest.sample
    np.savez_compressed(entries[0].numbers, **stored)


# --- the inputs ---


def _digits(random: RandomState) -> list[Feed]:
    from burnish.models.mnist.train import digits, normalised

    return [{"images": normalised(digits("test")[0][:16])}]


def _sentences(random: RandomState) -> list[Feed]:
    """Three of different lengths."""
    mask = (np.arange(15) < np.array([[15], [9], [4]])).astype(np.int64)
    ids = random.randint(1000, 30000, mask.shape).astype(np.int64) * mask
    return [
        {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
    ]


def _sounds(random: RandomState) -> list[Feed]:
    """A window at 16 kHz and one at 8 kHz, two sounds each."""
    calls: list[Feed] = []
    for rate, samples in ((16000, 576), (8000, 288)):
        time = np.arange(samples) / rate
        tone = 0.3 * np.sin(2 * np.pi * np.array([[140.0], [220.0]]) * time)
        calls.append(
            {
                "input": (tone + 0.02 * random.randn(2, samples)).astype(np.float32),
                "sr": np.array(rate, np.int64),
                "state": (0.5 * random.randn(2, 2, 128)).astype(np.float32),
            }
        )
    return calls


def _characters(random: RandomState) -> list[Feed]:
    ids = random.randint(0, 139, 40), random.randint(0, 6227, 40)
    return [{"input": np.stack(ids).astype(np.int64)[None]}]


def _squares(random: RandomState) -> list[Feed]:
    """Two pictures of coloured squares, without the mean colour."""
    colours = random.uniform(-110, 140, (2, 8, 8, 3)).astype(np.float32)
    return [{"input_0": colours.repeat(28, 1).repeat(28, 2)}]


def _noise(random: RandomState) -> list[Feed]:
    return [{"images": random.randn(2, 3, 224, 224).astype(np.float32)}]


_FEEDS: dict[str, Callable[[RandomState], list[Feed]]] = {
    "mnist": _digits,
    "minilm": _sentences,
    "silero_vad": _sounds,
    "attacut": _characters,
    "open_nsfw": _squares,
    "squeezenet": _noise,
    "resnet18": _noise,
}
