"""Training steps beside PyTorch's: time, memory, and whether losses agree.

    python benchmarks/training.py [--threads 1,2] [--only TEXT,TEXT] [--rounds 6]
        [--contenders planned,plain,torch,channels_last,torch.compile]
        [--own-time] [--explain] [--patience 2] [--json FILE]
    python benchmarks/training.py --errors  # of gradients: see gradient_errors.py

A step is the forward pass, the loss, the gradients and the update of Adam, PyTorch's
fused; all in float32, from the same weights. "planned" is a plan of `burnish.compile`;
"plain" is the function as it is, which uses kernels where they were built before, by
`burnish kernels build`; "channels_last" is PyTorch in that memory format.
Each contender is a process of its own, asked in turn. What is printed for each row:
the milliseconds of each (the processor's own with --own-time, for one thread), every
other contender's time divided by the planned one's; MB that a step holds at its peak
more than the imported library; how far the losses of the first and the third step are
from PyTorch's; at the end the geometric means.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from race import Run, means, race
from training_rows import ROWS, Row, given, is_trained, weights

RATE = 1e-3
CONTENDERS = ("planned", "plain", "torch", "channels_last", "torch.compile")
_DEFAULT = "planned,plain,torch,channels_last"


def our_step(row: Row, kind: str, threads: int) -> tuple[Run, Callable[[], str]]:
    import burnish
    from burnish import Tensor, nn, ops, optim

    class Functions:
        gelu, relu = staticmethod(ops.gelu), staticmethod(ops.relu)
        cat = staticmethod(ops.concat)
        scaled_dot_product_attention = staticmethod(ops.scaled_dot_product_attention)

    burnish.set_num_threads(threads)
    models = row.make(nn, Functions)
    models = [models] if isinstance(models, nn.Module) else list(models)
    for model in models:
        model.load_state_dict({**model.state_dict(), **weights(model)})
        for name, param in model.named_parameters():
            param.trainable = is_trained(row, name)
        model.to("cpu:autodiff")
    inputs, labels = given(row)
    adams = [optim.Adam() for _ in models]
    tensors, wanted = [Tensor(each) for each in inputs], Tensor(labels)

    model, adam, critic, other_adam = models[0], adams[0], models[-1], adams[-1]

    def step(wanted: Any, *tensors: Any) -> Any:
        made = model(*tensors)
        made = made.reshape(-1, made.shape[-1]) if row.words else made
        labels = wanted.reshape(-1) if row.words else wanted
        loss = nn.cross_entropy(made, labels)
        adam.step(RATE, model, loss.backward())
        return loss

    def turns(noise: Any, images: Any) -> Any:
        fake = model(noise)
        loss = critic(fake.detach()).mean() - critic(images).mean()
        other_adam.step(RATE, critic, loss.backward())
        other = -critic(fake).mean()
        adam.step(RATE, model, other.backward())
        return loss + other

    function = step if len(models) == 1 else turns
    fast = burnish.compile(function) if kind == "planned" else function

    def report() -> str:
        return fast.explain() if kind == "planned" else ""

    return lambda: fast(wanted, *tensors).item(), report


def their_step(row: Row, kind: str, threads: int) -> tuple[Run, Callable[[], str]]:
    import torch

    class Functions:
        gelu, relu = torch.nn.functional.gelu, torch.relu
        cat = torch.cat
        scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention

    torch.set_num_threads(threads)
    models = row.make(torch.nn, Functions)
    models = [models] if isinstance(models, torch.nn.Module) else list(models)
    inputs, labels = given(row)
    tensors, wanted = [torch.from_numpy(each) for each in inputs], torch.tensor(labels)
    adams = []
    for i, model in enumerate(models):
        state = {k: torch.from_numpy(v) for k, v in weights(model).items()}
        model.load_state_dict(state, strict=False)
        for name, param in model.named_parameters():
            param.requires_grad_(is_trained(row, name))
        if kind == "channels_last":
            models[i] = model = model.to(memory_format=torch.channels_last)
        trained = [p for p in model.parameters() if p.requires_grad]
        adams.append(torch.optim.Adam(trained, RATE, fused=True))
        if kind == "torch.compile":
            models[i] = torch.compile(model)
    if kind == "channels_last" and row.images:
        tensors[0] = tensors[0].to(memory_format=torch.channels_last)

    def step() -> Any:
        adams[0].zero_grad()
        made = models[0](*tensors)
        made = made.reshape(-1, made.shape[-1]) if row.words else made
        labels = wanted.reshape(-1) if row.words else wanted
        loss = torch.nn.functional.cross_entropy(made, labels)
        loss.backward()
        adams[0].step()
        return loss.item()

    def turns() -> Any:
        generator, critic = models
        adams[1].zero_grad()
        fake = generator(wanted)
        loss = critic(fake.detach()).mean() - critic(tensors[0]).mean()
        loss.backward()
        adams[1].step()
        adams[0].zero_grad()
        for param in critic.parameters():
            param.requires_grad_(False)
        other = -critic(fake).mean()
        other.backward()
        for param in critic.parameters():
            param.requires_grad_(True)
        adams[0].step()
        return (loss + other).item()

    return (step if len(models) == 1 else turns), str


def made(kind: str, name: str, setting: dict[str, Any]) -> tuple[Run, Any]:
    """A contender's step; the losses of its first three, and the MB at its peak."""
    is_ours = kind in ("planned", "plain")
    if is_ours:
        from burnish.kernels import library

        library()
    else:
        import torch.optim  # noqa: F401
    before = _memory("VmRSS")
    find = our_step if is_ours else their_step
    run, report = find(ROWS[name], kind, setting["threads"])
    losses = [run() for _ in range(3)]
    if setting["explain"] and kind == "planned":
        print(report(), flush=True)
    return run, (losses, _peak(run) - before)


def _peak(run: Run) -> float:
    """The most MB that this process has while the step runs; Linux says it."""
    Path("/proc/self/clear_refs").write_text("5")
    run()
    return _memory("VmHWM")


def _memory(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def shown(row: dict[str, Any], kinds: list[str]) -> str:
    cells, ratios, memory, notes = [], [], [], []
    for kind in kinds:
        took, of_ours = row.get(kind), row.get("planned")
        known = isinstance(took, float)
        cells.append(f"{took * 1e3:9.2f}ms" if known else f"{'-':>11}")
        memory.append(f"{row['memory'].get(kind, 0):6.0f}")
        if isinstance(took, str):
            notes.append(f"{kind}: {took}")
        if kind != "planned":
            both = known and isinstance(of_ours, float)
            ratios.append(f"{took / of_ours:6.2f}" if both else f"{'-':>6}")
    text = f"{''.join(ratios)}  {''.join(memory)}"
    apart = " ".join(f"{each:.0e}" for each in row["apart"])
    head = f"{row['name']:26} {row['threads']}t"
    return f"{head}{''.join(cells)} {text}  {apart} {'; '.join(notes)}"


def table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A line for each network and number of threads, printed as they come."""
    kinds, rows = options.contenders.split(","), []
    wanted = options.only.lower().split(",")
    for name in (n for n in ROWS if any(text in n.lower() for text in wanted)):
        for threads in map(int, options.threads.split(",")):
            setting = {"threads": threads, "rounds": options.rounds, "chunks": 2}
            setting["explain"] = options.explain
            setting |= {"patience": options.patience, "own_time": options.own_time}
            own = [k for k in kinds if ROWS[name].images or k != "channels_last"]
            took, firsts, failed = race(made, name, own, setting)
            row: dict[str, Any] = {"name": name, "threads": threads, **failed, **took}
            row["memory"] = {kind: memory for kind, (_, memory) in firsts.items()}
            row["apart"] = []
            if {"planned", "torch"} <= set(firsts):
                ours, theirs = firsts["planned"][0], firsts["torch"][0]
                row["apart"] = [abs(ours[i] / theirs[i] - 1) for i in (0, 2)]
            print(shown(row, kinds), flush=True)
            rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--only", default="", help="rows whose name has one of these")
    parser.add_argument("--contenders", default=_DEFAULT)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--own-time", action="store_true")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--patience", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--errors", action="store_true", help="gradient_errors.py")
    parser.add_argument("--draws", type=int, default=3, help="with --errors")
    options = parser.parse_args()
    kinds = options.contenders.split(",")
    if unknown := set(kinds) - set(CONTENDERS):
        parser.error(f"--contenders: expected some of {CONTENDERS}, got {unknown}")
    if options.errors:
        from gradient_errors import table as errors

        errors(options)
        return
    print(f"{'':29}" + "".join(f"{kind:>11}" for kind in kinds), "ratios, MB, apart")
    rows = table(options)
    print(means(rows, "planned", kinds))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
