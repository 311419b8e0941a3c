"""WAV files, and folders of them with one folder a class."""

from __future__ import annotations

import io
import os
from typing import Literal

import numpy as np

from burnish.data.dataset import in_range
from burnish.data.sources.folders import labelled_files
from burnish.errors import InputError, RecordError

Path = str | os.PathLike[str]


def read_wav(
    source: Path | bytes, *, where: str = "a WAV file"
) -> tuple[np.ndarray, int]:
    """(samples, rate) of a WAV file: float32 (channels, n) from -1 to 1, and hertz.

    source: a path, or the bytes of a file, which `where` names in messages. Samples are
    whole numbers of 8, 16, 24 or 32 bits. Raises RecordError when the file is damaged
    or compressed.
    """
    import wave

    if not isinstance(source, bytes):
        where = os.fspath(source)
    try:
        with (
            (
                io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")
            ) as opened,
            wave.open(opened) as file,
        ):
            channels, width = file.getnchannels(), file.getsampwidth()
            rate, count = file.getframerate(), file.getnframes()
            content = file.readframes(count)
    except (wave.Error, EOFError) as error:
        raise RecordError(
            f"{where}: expected a WAV file of whole numbers (PCM), got: "
            f"{error or 'its end'}"
        ) from None
    if width not in (1, 2, 3, 4) or len(content) != count * channels * width:
        raise RecordError(
            f"{where}: expected {count} frames of {channels} x {8 * width} bits, got "
            f"{len(content)} bytes"
        )
    samples = _samples(np.frombuffer(content, np.uint8), width)
    return np.ascontiguousarray(samples.reshape(-1, channels).T), rate


def _samples(content: np.ndarray, width: int) -> np.ndarray:
    if width == 1:  # the only unsigned one
        return (content.astype(np.float32) - 128) / 128
    whole = np.zeros((content.size // width, 4), np.uint8)
    whole[:, 4 - width :] = content.reshape(-1, width)  # the highest bytes of 32 bits
    return (whole.view("<i4")[:, 0] / 2.0**31).astype(np.float32)


class AudioFolderDataset:
    """A folder with one folder of WAV files a class: items are (samples, label).

    samples: float32 (n,), the mean of the channels; label: int64. rate: what all files
    must have; length: samples that each is cut to, or filled up to with zeros.
    """

    def __init__(
        self, root: Path, *, rate: int | None = None, length: int | None = None
    ):
        self.items, self.classes = labelled_files(root, (".wav",), skip="_")
        self.rate = rate
        self.length = length

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int, /) -> tuple[np.ndarray, np.int64]:
        path, label = self.items[in_range(index, self)]
        channels, rate = read_wav(path)
        if self.rate not in (None, rate):
            raise RecordError(f"{path}: expected {self.rate} Hz, got {rate} Hz")
        samples = channels.mean(axis=0)
        if self.length is not None:
            missing = max(0, self.length - samples.size)
            samples = np.pad(samples[: self.length], (0, missing))
        return samples, np.int64(label)


class SpeechCommandsDataset(AudioFolderDataset):
    """Spoken words of a second, 16 kHz: items are (samples (16000,), label).

    folder: as unpacked, with a folder a word, `validation_list.txt` and
    `testing_list.txt`, which list the files outside the training split.
    """

    def __init__(self, folder: Path, split: Literal["train", "valid", "test"]):
        lists = {"valid": "validation_list.txt", "test": "testing_list.txt"}
        if split not in ("train", *lists):
            raise InputError(
                "SpeechCommandsDataset: expected 'train', 'valid' or 'test', got "
                f"{split!r}"
            )
        super().__init__(folder, rate=16000, length=16000)
        listed = {name: _listed(folder, file) for name, file in lists.items()}
        listed["train"] = {
            path for path, _ in self.items if path not in set().union(*listed.values())
        }
        known = {path for path, _ in self.items}
        if missing := sorted(listed[split] - known):
            raise RecordError(
                f"{missing[0]}: expected a file, which {lists[split]} names, got "
                "nothing"
            )
        self.items = [item for item in self.items if item[0] in listed[split]]


def _listed(folder: Path, name: str) -> set[str]:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return {os.path.join(folder, *line.split("/")) for line in file.read().split()}
