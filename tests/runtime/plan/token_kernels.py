"""What the kernels of a step of one token compute, in NumPy."""

import contextlib

import numpy as np

from burnish import Tensor, ops
from burnish.backend.cuda.decoding import decode_attention, few_rows, sampling
from burnish.backend.cuda.graphs import graphs
from burnish.backend.cuda.norms import residual


class Room:
    """In place of `graphs.Room`: a "graph" makes its calls again."""

    def __init__(self, *_):
        self.counts = []

    building = computing = running = allocating = contextlib.nullcontext

    def captured(self, work):
        return Graph(work)


class Graph:
    def __init__(self, work):
        self.launch = work
        work()


def dense(w):
    """A weight's numbers (outs, ins)."""
    values = w.values
    if w.kind not in ("int8", "int4"):
        return few_rows.widened(values) if w.kind != "float" else values
    bits = 8 if w.kind == "int8" else 4
    codes = values.astype(np.float32)
    if bits == 4:
        codes = np.stack([values & 15, values >> 4], -1).reshape(w.outs, w.ins)
    codes = codes.astype(np.float32).reshape(w.outs, -1, w.block) - (1 << bits - 1)
    zeros = 0 if w.zeros is None else w.zeros[..., None]
    return ((codes - zeros) * w.scales[..., None]).reshape(w.outs, w.ins)


def product(x, weights, *, half="", act=("none", 0.0), gated=False, norm=None,
            residual=None, out=np.float32):  # fmt: skip
    x = x.astype(np.float64)
    if norm is not None:
        if norm.kind == "layer":
            x = x - x.mean(1, keepdims=True)
        x = x / np.sqrt((x * x).mean(1, keepdims=True) + norm.eps)
        x = x if norm.gain is None else x * norm.gain
        x = x if norm.shift is None else x + norm.shift
    parts = [x @ dense(w).T + (0 if w.bias is None else w.bias) for w in weights]
    parts = [parts[0], *parts[1:]] if gated else [np.concatenate(parts, 1)]
    parts[0] = activated(parts[0], *act)
    y = parts[0] * parts[1] if gated else parts[0]
    return (y if residual is None else y + residual).astype(out)


def activated(x, name, low):
    t = Tensor(x)
    if name == "gelu_tanh":
        return ops.gelu(t, approximate="tanh").numpy()
    if name == "swish":
        return x / (1 + np.exp(np.minimum(-low * x, 700)))
    return x if name == "none" else getattr(ops, name)(t).numpy()


def add_norm(x, z, weight, bias, eps, *, center, dtype, kept):
    assert z is None
    assert kept is None
    own = few_rows.Norm("layer" if center else "rms", weight, bias, eps)
    eye = few_rows.Weight("float", np.eye(x.shape[1]), x.shape[1], x.shape[1])
    return None, product(x, [eye], norm=own, out=dtype)


def attended(q, new, cache, position, room, *, scale, angles=None, mask=None,
             out=np.float32):  # fmt: skip
    place = int(position[0])
    q = q.astype(np.float64)
    if new is not None:
        k, v = new
        k = turned(k, angles) if angles else k
        put(cache[0], k, position)
        put(cache[1], v, position)
    q = turned(q, angles) if angles else q
    keys, values = (widened(part)[:, :, : place + 1] for part in cache)
    shared = q.shape[1] // keys.shape[1]
    keys, values = (np.repeat(part, shared, 1) for part in (keys, values))
    scores = np.einsum("nhd,nhsd->nhs", q, keys) * scale
    if mask is not None:
        scores = np.where(mask[:, None, : place + 1], scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return np.einsum("nhs,nhsd->nhd", shares, values).astype(out)


def turned(x, angles):
    cosines, sines = (part[:, None] for part in angles)
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cosines - b * sines, b * cosines + a * sines], -1)


def widened(array):
    return array if array.dtype == np.float32 else few_rows.widened(array)


def put(room, new, position):
    kinds = {2: "bfloat16" if room.dtype == np.uint16 else "float16"}
    kind = kinds.get(room.itemsize)
    room[:, :, int(position[0])] = few_rows.halved(new, kind) if kind else new


class Tokens:
    """In place of `sampling.Tokens`, for the likeliest tokens."""

    def __init__(self, choice, room, read, ends, chances):
        self.rest, self.read, self.ends = choice.rest, read, ends
        self.made = np.zeros((len(read[0]), room), np.int64)
        self.running = np.ones(len(read[0]), bool)

    def choose(self, logits, at, known, banned):
        given, position, places = self.read
        allowed = logits if banned is None else np.where(banned, -np.inf, logits)
        chosen = np.where(self.running, allowed.argmax(-1), self.rest)
        self.made[:, at] = given[:, 0] = chosen
        self.running &= ~np.isin(chosen, self.ends)
        position[0] = known
        if places is not None:
            places += 1


def take_place(monkeypatch):
    """Have steps of one token compute here."""
    monkeypatch.setattr(few_rows, "product", product)
    monkeypatch.setattr(residual, "add_norm", add_norm)
    monkeypatch.setattr(decode_attention, "attended", attended)
    monkeypatch.setattr(decode_attention, "put", put)
    monkeypatch.setattr(decode_attention, "Room", lambda *sizes: None)
    monkeypatch.setattr(graphs, "Room", Room)
    monkeypatch.setattr(graphs, "launches", lambda graph: 0)
    monkeypatch.setattr(graphs, "copy", lambda array: array.copy())
    monkeypatch.setattr(graphs, "copied_into", np.copyto)
    monkeypatch.setattr(sampling, "Tokens", Tokens)
    monkeypatch.setattr(sampling, "banned", banned)


def banned(tokens, vocab):
    return np.isin(np.arange(vocab), tokens) if tokens else None
