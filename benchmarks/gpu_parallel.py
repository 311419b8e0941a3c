"""ResNet-50's training on several GPUs: a step's time beside that on one.

    python benchmarks/gpu_parallel.py [--gpus 1,2] [--precision bf16,fp32] [--batch 64]
        [--rounds 8] [--torch]

A process a GPU, each with a batch of its own: `workers.mean` inside a step of
`burnish.compile`. --torch: PyTorch's DistributedDataParallel with torch.compile beside
it. A round is 10 steps, until the GPU is done. What is printed: milliseconds a step
(the median of the slowest process), and the share of linear scaling, the time on one
GPU over it. The processes' weights are compared at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from networks import resnet50

STEPS, RATE = 10, 1e-3


def rounds_of(step: Callable[[], Any], wait: Callable[[], Any], rounds: int) -> float:
    """The median of a step's milliseconds."""
    times = []
    for _ in range(rounds + 2):
        wait()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        times.append((time.perf_counter() - start) / STEPS * 1e3)
    return float(np.median(times[2:]))


def batch_of(count: int, rank: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(rank)
    x = rng.normal(size=(count, 3, 224, 224)).astype(np.float32)
    return x, rng.integers(0, 1000, count)


def ours(precision: str, count: int, rounds: int) -> list[Any]:
    """Every process's milliseconds, and the sums of its weights."""
    import cupy

    import burnish
    from burnish import Tensor, distributed, nn, optim
    from burnish.optim import GradientsParams

    workers = distributed.group("cuda")
    burnish.seed(0)
    model = resnet50(nn, 1000).to(workers.device.autodiff())
    rule = optim.SGD(momentum=0.9)
    x, t = (Tensor(a).to(workers.device) for a in batch_of(count, workers.rank))

    def step(x: Any, t: Any, rate: float) -> Any:
        loss = nn.cross_entropy(model(x), t)
        found = GradientsParams.from_grads(loss.backward(), model)
        found = GradientsParams(workers.mean(found, len(x)))
        rule.step(rate, model, found)
        return loss

    fast = burnish.compile(step, precision=precision)
    wait = cupy.cuda.Device().synchronize
    took = rounds_of(lambda: fast(x, t, RATE), wait, rounds)
    assert "one CUDA graph" in fast.explain(), fast.explain()
    sums = [float(abs(p.numpy()).sum()) for _, p in model.named_parameters()]
    return workers.gather({"took": took, "sums": json.dumps(sums)})


def theirs(precision: str, count: int, rounds: int) -> list[Any]:
    """The same of PyTorch."""
    import torch

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False
    last = torch.channels_last
    model: Any = resnet50(torch.nn, 1000).cuda().to(memory_format=last)
    rule = torch.optim.SGD(model.parameters(), RATE, momentum=0.9, fused=True)
    if size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    model = torch.compile(model)
    x, t = (torch.from_numpy(a).cuda() for a in batch_of(count, rank))
    x = x.contiguous(memory_format=last)

    def step() -> None:
        rule.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(model(x), t)
        loss.backward()
        rule.step()

    took = rounds_of(step, torch.cuda.synchronize, rounds)
    sums = [float(p.detach().abs().sum()) for p in model.parameters()]
    every: list[Any] = [None] * size
    own = {"took": took, "sums": json.dumps(sums)}
    torch.distributed.all_gather_object(every, own)
    torch.distributed.destroy_process_group()
    return every


def started(whose: str, size: int, precision: str, options: Any) -> Any:
    """What the first of `size` processes prints."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--work", whose, "--precision", precision]
    command += ["--batch", f"{options.batch}", "--rounds", f"{options.rounds}"]
    place = {"WORLD_SIZE": f"{size}", "MASTER_PORT": f"{port}"}
    place |= {"MASTER_ADDR": "127.0.0.1"}
    every = [
        subprocess.Popen(
            command,
            env=os.environ | place | {"RANK": f"{rank}"},
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
        )
        for rank in range(size)
    ]
    text, _ = every[0].communicate()
    for each in every:
        each.wait()
    return json.loads(text.decode().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--precision", default="bf16,fp32")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--work", help="what one process does")
    options = parser.parse_args()
    if options.work:
        work = ours if options.work == "burnish" else theirs
        print(json.dumps(work(options.precision, options.batch, options.rounds)))
        return
    for precision in options.precision.split(","):
        for whose in ("burnish", *(["torch"] if options.torch else [])):
            alone = 0.0
            for size in map(int, options.gpus.split(",")):
                found = started(whose, size, precision, options)
                took = max(each["took"] for each in found)
                alone = alone or took
                same = len({each["sums"] for each in found}) == 1
                print(
                    f"ResNet-50, batch {options.batch} a GPU, {precision}, {whose}: "
                    f"{size} GPUs {took:.2f} ms, {alone / took:.3f} of linear; "
                    f"weights {'the same' if same else 'DIFFER'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
