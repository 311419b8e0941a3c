"""A user's code as mypy --strict and pyright read it (`.ci/check users pyright`).

Every `assert_type` is a promise of the runtime's annotations.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

from burnish import Tensor, nn, ops, optim

Array = np.ndarray[Any, Any]


class Block(nn.Module):
    """(..., dim) -> (..., dim)"""

    def __init__(self, dim: int, rate: float = 0.1) -> None:
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(rate)
        self.scale = nn.Param(nn.init.ones, (dim,))

    def forward(self, x: Tensor, *, skip: bool = True) -> Tensor:
        y = self.dropout(ops.gelu(self.fc(self.norm(x)))) * self.scale
        return x + y if skip else y


class Net(nn.Module):
    """ids (batch, time) -> logits (batch, classes), weights (batch, time)"""

    def __init__(self, dim: int, depth: int, classes: int) -> None:
        self.embed = nn.Embedding(100, dim)
        self.blocks = [Block(dim) for _ in range(depth)]
        self.pool = nn.Sequential(nn.Linear(dim, 1), nn.Tanh())
        self.head = nn.Linear(dim, classes)

    @nn.accepts(ids="int64[batch, time]")
    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        weights = ops.softmax(self.pool(x).squeeze(-1), axis=-1)
        return self.head((x * weights.unsqueeze(-1)).sum(1)), weights


def modules(net: Net, ids: Tensor) -> Tensor:
    assert_type(net.blocks[0](ids, skip=False), Tensor)
    assert_type(net.train(), Net)
    assert_type(net.valid().to("cpu"), Net)
    assert_type(net.fork("cpu:autodiff"), Net)
    assert_type(Net.from_file("net.safetensors"), Net)
    assert_type(nn.ReLU()(ids), Tensor)
    assert_type(nn.MaxPool2d(2)(ids), Tensor)
    assert_type(nn.LSTM(3, 4)(ids), tuple[Tensor, tuple[Tensor, Tensor]])
    logits, weights = net(ids)
    assert_type(weights, Tensor)
    return logits


def operators(x: Tensor, array: Array) -> None:
    assert_type(ops.relu(x), Tensor)
    assert_type(ops.relu(array), Array)
    assert_type(ops.leaky_relu(x, negative_slope=0.2), Tensor)
    assert_type(ops.add(1.0, x), Tensor)
    assert_type(ops.add(array, x), Tensor)
    assert_type(ops.add(array, 1), Array)
    assert_type(ops.where(x > 0, x, 0.0), Tensor)
    assert_type(ops.concat([x, x], axis=-1), Tensor)
    assert_type(ops.split(x, num=2), tuple[Tensor, ...])
    assert_type(ops.scaled_dot_product_attention(x, x, x, is_causal=True), Tensor)


def methods(x: Tensor) -> Tensor:
    assert_type(x.shape, tuple[int, ...])
    assert_type(x + 1, Tensor)
    assert_type(1 - x, Tensor)
    assert_type(x @ x.mT, Tensor)
    assert_type(x[0, ..., None], Tensor)
    assert_type(x.mean(axis=0, keepdims=True), Tensor)
    assert_type(x.exp(), Tensor)
    assert_type(x.reshape(2, -1).transpose(1, 0), Tensor)
    assert_type(x.astype("float32"), Tensor)
    assert_type(x.numpy(), np.ndarray)
    return x.softmax(-1)


def options_in_order(x: Tensor, ids: Tensor) -> None:
    """As NumPy and PyTorch take them, and by name."""
    assert_type(ops.softmax(x, -1), Tensor)
    assert_type(ops.log_softmax(x, 1), Tensor)
    assert_type(ops.sum(x, 0, True), Tensor)
    assert_type(ops.mean(x, (0, 1)), Tensor)
    assert_type(ops.var(x, 1), Tensor)
    assert_type(ops.argmax(x, -1), Tensor)
    assert_type(ops.max(x, 1, keepdims=True), Tensor)
    assert_type(ops.argsort(x, 1, True), Tensor)
    assert_type(ops.cumsum(x, 1), Tensor)
    assert_type(ops.concat([x, x], 1), Tensor)
    assert_type(ops.stack([x, x], -1), Tensor)
    assert_type(ops.split(x, [1, 2], 1), tuple[Tensor, ...])
    assert_type(ops.chunk(x, 2, 1), tuple[Tensor, ...])
    assert_type(ops.transpose(x, (1, 0)), Tensor)
    assert_type(ops.permute(x, (1, 0)), Tensor)
    assert_type(ops.reshape(x, (2, -1)), Tensor)
    assert_type(ops.broadcast_to(x, (2, 3)), Tensor)
    assert_type(ops.squeeze(x, 0), Tensor)
    assert_type(ops.unsqueeze(x, 0), Tensor)
    assert_type(ops.flatten(x, 1), Tensor)
    assert_type(ops.roll(x, 1, 0), Tensor)
    assert_type(ops.flip(x, 0), Tensor)
    assert_type(ops.tile(x, (2, 1)), Tensor)
    assert_type(ops.gelu(x, "tanh"), Tensor)
    assert_type(ops.leaky_relu(x, 0.2), Tensor)
    assert_type(ops.elu(x, 0.5), Tensor)
    assert_type(ops.clip(x, 0, 1), Tensor)
    assert_type(ops.round(x, 2), Tensor)
    assert_type(ops.embedding(ids, x, 0), Tensor)
    assert_type(ops.where(x > 0, x, 0), Tensor)
    assert_type(ops.take(x, ids, 0), Tensor)
    assert_type(x.softmax(axis=1), Tensor)
    assert_type(x.max(1, True), Tensor)
    assert_type(x.sort(0), Tensor)
    assert_type(x.median(0), Tensor)
    assert_type(x.roll(1, axis=0), Tensor)
    assert_type(x.split(2, 1), tuple[Tensor, ...])
    assert_type(x.transpose(1, 0), Tensor)
    assert_type(x.flatten(1), Tensor)
    assert_type(x.squeeze(0), Tensor)


def mistakes(net: Net, x: Tensor) -> None:
    """Each line is an error to a checker; an ignore that is not needed is one too."""
    ops.leaky_relu(x, negative_slop=0.2)  # type: ignore[call-overload]
    ops.leaky_relu(x, negative_slope="0.2")  # type: ignore[call-overload]
    ops.softmax(x, dim=1)  # type: ignore[call-overload]
    x.softmax(dim=1)  # type: ignore[call-arg]
    x.mean(keepdims="yes")  # type: ignore[arg-type]
    net.blocks[0](x, False)  # type: ignore[call-arg]
    net.blocks[0](x, skip=3)  # type: ignore[arg-type]
    optim.AdamW().step("1e-3", net, x.backward())  # type: ignore[arg-type]


def training(net: Net, ids: Tensor, targets: Tensor) -> Net:
    tuned = net.train()
    optimizer = optim.AdamW(weight_decay=0.01)
    logits, _ = tuned(ids)
    loss = nn.cross_entropy(logits, targets)
    assert_type(loss, Tensor)
    optimizer.step(1e-3, tuned, loss.backward())
    assert_type(optim.Adam(), optim.Adam)
    return tuned.valid()
