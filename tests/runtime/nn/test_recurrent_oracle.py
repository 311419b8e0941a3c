"""Recurrent layers and cells against torch's of the same name."""

import numpy as np
import pytest

from burnish import Tensor, nn
from burnish.errors import InputError
from tests.runtime.nn.oracle import DTYPES, compare, flat, layer, pair

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

LAYERS = [
    layer("LSTM", (5, 2, 3), 3, 4),
    layer("LSTM", (2, 5, 3), 3, 4, 2, batch_first=True, bidirectional=True),
    layer("LSTM", (5, 3), 3, 4, bias=False),
    layer("LSTM", (5, 2, 3), 3, 4, 2, proj_size=2, bidirectional=True),
    layer("GRU", (5, 2, 3), 3, 4, 2, bidirectional=True),
    layer("GRU", (2, 5, 3), 3, 4, batch_first=True, bias=False),
    layer("RNN", (5, 2, 3), 3, 4, 2),
    layer("RNN", (5, 2, 3), 3, 4, nonlinearity="relu", bidirectional=True),
    layer("LSTM", (4, 0, 3), 3, 4, 2, bidirectional=True),
    layer("GRU", (0, 4, 3), 3, 4, batch_first=True),
    layer("RNN", (4, 0, 3), 3, 4, bidirectional=True),
    layer("RNNCell", (2, 3), 3, 4),
    layer("RNNCell", [(2, 3), (2, 4)], 3, 4, nonlinearity="relu"),
    layer("RNNCell", [(3,), (4,)], 3, 4, bias=False),
    layer("LSTMCell", (2, 3), 3, 4),
    layer("LSTMCell", (3,), 3, 4, bias=False),
    layer("GRUCell", [(2, 3), (2, 4)], 3, 4),
    layer("GRUCell", (3,), 3, 4, bias=False),
]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", LAYERS, ids=str)
def test_layer(row, dtype):
    row.check(dtype)


@pytest.mark.parametrize(("kind", "count"), [("LSTM", 2), ("GRU", 1), ("RNN", 1)])
@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 3)])
def test_initial_states(kind, count, shape):
    ours, theirs = pair(kind, (3, 5, 2), {"bidirectional": True})
    rng = np.random.default_rng(0)
    size = (4, 2, 5) if len(shape) == 3 else (4, 5)
    states = [rng.normal(size=size) for _ in range(count)]
    x = rng.normal(size=shape)
    mine, its = [Tensor(s) for s in states], [torch.tensor(s) for s in states]
    got = ours(Tensor(x), tuple(mine) if count > 1 else mine[0])
    want = theirs(torch.tensor(x), tuple(its) if count > 1 else its[0])
    for one, other in zip(flat(got), flat(want), strict=True):
        compare(one, other, kind)


def test_the_state_of_an_lstm_cell():
    ours, theirs = pair("LSTMCell", (3, 4), {})
    rng = np.random.default_rng(0)
    x, h, c = (rng.normal(size=(2, n)) for n in (3, 4, 4))
    got = ours(Tensor(x), (Tensor(h), Tensor(c)))
    want = theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
    for one, other in zip(got, want, strict=True):
        compare(one, other, "state")


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_lengths_are_torchs_packed_sequences(kind, bidirectional, batch_first):
    options = {"bidirectional": bidirectional, "batch_first": batch_first}
    ours, theirs = pair(kind, (3, 4, 2), options)
    lengths = np.array([3, 5, 1])
    x = np.random.default_rng(0).normal(size=(3, 5, 3))
    x = x if batch_first else x.swapaxes(0, 1)
    leaf, given = Tensor(x).require_grad(), torch.tensor(x, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        given, torch.tensor(lengths), batch_first, enforce_sorted=False
    )
    output, states = theirs(packed)
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first)
    got = ours.to("cpu:autodiff")(leaf, lengths=lengths)
    for one, other in zip(flat(got), flat([output, states]), strict=True):
        compare(one, other, kind)
    g = np.random.default_rng(1).normal(size=output.shape)
    output.backward(torch.tensor(g))
    compare(leaf.grad(got[0].backward(g)), given.grad, "gradient")


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match=r"expected 2 lengths from 1 to 5, got \[6"):
        nn.GRU(3, 4)(Tensor(np.zeros((5, 2, 3), np.float32)), lengths=[6, 1])
