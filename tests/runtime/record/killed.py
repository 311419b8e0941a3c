"""Saves over and over in processes that are killed, and reads what they leave.

    python killed.py FOLDER ROUNDS

Prints JSON: rounds, files that a kill left unfinished, records that came through.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from burnish.record import (
    BinRecorder,
    JsonGzRecorder,
    NamedMpkRecorder,
    NpzRecorder,
    PrettyJsonRecorder,
    SafetensorsRecorder,
)

RECORDERS = [
    SafetensorsRecorder(),
    NamedMpkRecorder(),
    BinRecorder(),
    PrettyJsonRecorder(),
    JsonGzRecorder(),
    NpzRecorder(),
]


def state(number):
    """A record whose every value says which one it is."""
    return {name: np.full(1000, number, "int32") for name in "abcde"}


def save_forever(recorder, path, number):
    while True:
        number += 1
        recorder.record(state(number), path)


def number_in(recorder, path):
    """The number that all values have; it must be one."""
    (number,) = {int(n) for array in recorder.load(path).values() for n in set(array)}
    return number


def main(folder, rounds):
    chance = random.Random(0)
    latest = [0] * len(RECORDERS)
    for index, recorder in enumerate(RECORDERS):
        recorder.record(state(0), folder / str(index))
    for count in range(rounds):
        index = count % len(RECORDERS)
        recorder, path = RECORDERS[index], folder / str(index)
        child = os.fork()
        if not child:
            save_forever(recorder, path, latest[index])
        time.sleep(chance.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = number_in(recorder, path)
        assert found >= latest[index], f"{path}: {found} after {latest[index]}"
        latest[index] = found
    left = len(list(folder.glob(".*.tmp")))
    print(json.dumps({"rounds": rounds, "unfinished": left, "saved": sum(latest)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
