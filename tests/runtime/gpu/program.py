"""What a process of the tests does: steps of training with a part of each batch.

python program.py FILE PRECISION writes the weights, from the first process.
"""

import sys

import numpy as np

import burnish
from burnish import Tensor, data, distributed, nn, optim
from burnish.learner import Learner, Renderer, Supervised
from burnish.optim import GradientsParams

STEPS, COUNT, RATE = 6, 12, 0.05


def network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10)
    )


def batches():
    """Pictures and classes of every step."""
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = rng.normal(size=(COUNT, 3, 8, 8)).astype(np.float32)
        yield x, rng.integers(0, 10, COUNT)


def step_of(model, workers):
    rule = optim.SGD(momentum=0.9, clip=optim.ClipGlobalNorm(1.0))

    def step(x, t, rate):
        loss = nn.cross_entropy(model(x), t)
        found = GradientsParams.from_grads(loss.backward(), model)
        found = GradientsParams(workers.mean(found, len(x)))
        rule.step(rate, model, found)
        return loss

    return step


def part(array, workers):
    """The process's items of a batch; the first process has the most."""
    ends = [COUNT * 2 * i // (2 * workers.size + 1) for i in range(workers.size)]
    parts = np.split(array, [COUNT - end for end in reversed(ends[1:])])
    return Tensor(parts[workers.rank]).to(workers.device)


def trained(workers, precision):
    burnish.seed(0)
    model = network().to(workers.device.autodiff())
    own = step_of(model, workers)
    step = burnish.compile(own, precision=precision)
    for x, t in batches():
        step(part(x, workers), part(t, workers), RATE)
    text = step.explain()
    assert "one CUDA graph" in text, text
    weights = model.state_dict()
    if precision == "fp32":
        stays_small(lambda: step(part(x, workers), part(t, workers), RATE))
    return weights


def stays_small(run):
    """Whether the GPU has as much memory left after many steps as after some."""
    import cupy

    left = []
    for count in (50, 500):
        for _ in range(count):
            run()
        cupy.cuda.Device().synchronize()
        left.append(cupy.cuda.runtime.memGetInfo()[0])
    assert left[0] - left[1] <= 2 << 20, left


def normalized(workers):
    """A learner's processes end with the same weights and running statistics."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(61, 3, 8, 8)).astype(np.float32)
    y = (x.mean((1, 2, 3)) > 0).astype(np.int64)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(288, 2),
    )
    learner = Learner(
        model.to(workers.device),
        optim.AdamW(),
        1e-2,
        step=Supervised(nn.CrossEntropyLoss()),
        epochs=3,
        compile="bf16",
        renderer=Renderer(),
        workers=workers,
    )
    fitted = learner.fit(data.batches((x, y), 10, shuffle=1))
    own = {k: v.astype(np.float32) for k, v in fitted.to("cpu").state_dict().items()}
    first, *others = workers.gather(own)
    for other in others:
        for name, array in first.items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)
    assert abs(first["1.running_mean"]).max() > 0


def main(file, precision):
    workers = distributed.group("cuda")
    weights = trained(workers, precision)
    if workers.is_first:
        np.savez(file, **{name: array.get() for name, array in weights.items()})
    normalized(workers)


if __name__ == "__main__":
    main(*sys.argv[1:])
