"""Where is speech? A sound that is made here, window by window, as from a microphone.

    python -m burnish.models.silero_vad.infer [--seconds 6] [--device cpu]

Two bursts of voice (a buzzing throat, shaped by the formants of moving vowels) stand
between stretches of noise. Each line is 96 ms, its bar the probability of speech.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from burnish import Tensor
from burnish.models._gallery import weights
from burnish.models._originals import OriginalError
from burnish.models.silero_vad.silero_vad import Model

RATE = 16000
WINDOW = 512
CONTEXT = 64
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (570, 840, 2410), (530, 1840, 2480))


class Stream:
    """Probabilities of speech, window after window; it remembers what it heard."""

    def __init__(self, model: Model):
        self.model = model
        self.context = np.zeros((1, CONTEXT), np.float32)
        self.state = Tensor.zeros(2, 1, 128)

    def hear(self, window: np.ndarray) -> float:
        """window: (512,) samples between -1 and 1, 16,000 a second."""
        heard = np.concatenate([self.context, window[None]], axis=1)
        probability, self.state = self.model(heard, np.array(RATE), self.state)
        self.context = heard[:, -CONTEXT:]
        return float(probability.item())


def voice(seconds: float, pitch: float) -> np.ndarray:
    """Syllables of a throat's harmonics, each with the formants of its vowel."""
    time = np.arange(int(seconds * RATE)) / RATE
    tone = pitch * (1 + 0.1 * np.sin(2 * np.pi * 1.3 * time))
    phase = 2 * np.pi * np.cumsum(tone) / RATE
    beat = 4.0 * time  # syllables
    nearest = np.array(VOWELS)[beat.astype(int) % len(VOWELS)]
    sound = np.zeros_like(time)
    for harmonic in range(1, 30):
        frequency = harmonic * tone
        gain = sum(
            np.exp(-(((frequency - formant) / 120) ** 2)) for formant in nearest.T
        )
        sound += (gain + 0.02) / harmonic**0.5 * np.sin(harmonic * phase)
    loudness = np.abs(np.sin(np.pi * beat)) ** 0.5
    return 0.15 * sound * loudness


def recording(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """A sound, and for every sample whether the voice is there."""
    count = int(seconds * RATE)
    sound = 0.003 * np.random.default_rng(0).standard_normal(count)
    spoken = np.zeros(count, bool)
    for begin, end, pitch in ((0.15, 0.45, 120.0), (0.6, 0.85, 210.0)):
        first, last = int(begin * count), int(end * count)
        spoken[first:last] = True
        sound[first:last] += voice((last - first) / RATE, pitch)[: last - first]
    return sound.clip(-1, 1).astype(np.float32), spoken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--device", default="cpu", help='"cpu" or "cuda"')
    options = parser.parse_args()
    try:
        model = Model.from_file(weights("silero_vad")).to(options.device)
    except OriginalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1

    stream = Stream(model)
    sound, spoken = recording(options.seconds)
    right = windows = 0
    for start in range(0, len(sound) - WINDOW + 1, WINDOW):
        probability = stream.hear(sound[start : start + WINDOW])
        truth = spoken[start : start + WINDOW].mean() > 0.5
        right += (probability > 0.5) == truth
        windows += 1
        if windows % 3 == 1:
            bar = "█" * round(40 * probability)
            print(f"{start / RATE:5.2f} s  {bar:40}  {'voice' if truth else ''}")
    print(f"{right} of {windows} windows are as they were made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
