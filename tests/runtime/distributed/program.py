"""What a process of the tests does: trains a small model, writes what came of it.

mpirun -n 2 python program.py DIRECTORY BATCH_SIZE [MODE [DEVICE [COMPILED]]]
"""

import json
import sys
from pathlib import Path

import numpy as np

import burnish
from burnish import data, distributed, nn, optim
from burnish.learner import (
    AUROC,
    Accuracy,
    Learner,
    LearningRate,
    Loss,
    NoImprovement,
    Renderer,
    Supervised,
)


class StopAt(Renderer):
    """Stops a run after some batches, as Ctrl-C does, from one process alone."""

    def __init__(self, learner, batches):
        self.learner, self.left = learner, batches

    def step(self, progress):
        self.left -= 1
        if not self.left:
            self.learner.interrupter.stop("a test")


def main(directory, batch_size, mode="whole", device="cpu", compiled=""):
    workers = distributed.group(device)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((78, 6)).astype("float32")
    y = (x[:, 0] + x[:, 1] > 0).astype("int64")
    train = data.batches((x[:61], y[:61]), int(batch_size), shuffle=3)
    valid = data.batches((x[61:], y[61:]), int(batch_size))
    burnish.seed(1 + workers.rank)  # the first one's weights are everyone's
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    learner = Learner(
        model.to(workers.device),
        optim.Adam(),
        optim.Cosine(1e-2, 30),
        step=Supervised(nn.CrossEntropyLoss()),
        metrics=[Loss(), Accuracy(), AUROC(), LearningRate()],
        epochs=4,
        accumulate=1 if mode == "at once" or compiled else 2,
        compile=bool(compiled),
        directory=directory,
        early_stopping=NoImprovement("Loss", epochs=4),
        renderer=Renderer(),
        resume="last" if mode == "resume" else None,
        workers=workers,
    )
    if mode == "stop":
        learner.renderer = StopAt(learner, 9)
    trained = learner.fit(train, valid)
    sums = [float(abs(v).sum()) for v in trained.to("cpu").state_dict().values()]
    gathered = [each["sums"] for each in workers.gather({"sums": np.array(sums)})]
    assert all((each == gathered[0]).all() for each in gathered)
    if workers.is_first:
        trained.save_file(Path(directory) / "trained.safetensors")
        where = {"size": workers.size, "reason": learner.interrupter.reason}
        (Path(directory) / "where.json").write_text(json.dumps(where))


if __name__ == "__main__":
    main(*sys.argv[1:])
