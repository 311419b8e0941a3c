"""Lookups in tables that a planned step trains: rows by the call's own numbers."""

import numpy as np
import pytest

import burnish
from burnish import Tensor, nn, ops, optim
from burnish.errors import InputError
from burnish.kernels import library

pytestmark = [
    pytest.mark.usefixtures("canaries"),
    pytest.mark.skipif(library() is None, reason="there is no compiler"),
]

ROWS, DIM, COUNT, LENGTH = 30, 20, 5, 12


class Reader(nn.Module):
    """ids (N, T) -> (N, 3), from one table or another"""

    def __init__(self, table, first=0):
        self.table, self.first = table, first
        self.places = nn.Embedding(LENGTH, DIM)
        self.head = nn.Linear(DIM, 3)

    def forward(self, ids):
        rows = self.table(ids[:, self.first :])
        if len(rows.shape) == 3:
            count = rows.shape[1]
            rows = (rows + self.places(Tensor(np.arange(count)))).mean(1)
        return self.head(rows)


class Trained:
    """A reader, and a step of it: planned, or as it is."""

    def __init__(self, make, planned, **options):
        random = np.random.default_rng(0)
        self.model = Reader(make(), **options).to("cpu:autodiff")
        for _, param in sorted(self.model.named_parameters()):
            param.assign(random.normal(size=param.shape).astype(np.float32))
        rule, model, rate = optim.Adam(), self.model, optim.Linear(0.1, 0.01, 100)
        self.rate = rate

        def step(ids, factor):
            loss = (model(ids) * factor).sum()
            rule.step(rate.step(), model, loss.backward())
            return loss

        self.step = burnish.compile(step) if planned else step

    @property
    def weights(self):
        return {p: np.array(a.data) for p, a in self.model.named_parameters()}


def batch(i):
    random = np.random.default_rng(i)
    factor = random.normal(size=(COUNT, 3)).astype(np.float32)
    return Tensor(random.integers(0, ROWS, (COUNT, LENGTH))), Tensor(factor)


TABLES = {
    "plain": lambda: nn.Embedding(ROWS, DIM),
    "padded": lambda: nn.Embedding(ROWS, DIM, padding_idx=3),
    "padded from the end": lambda: nn.Embedding(ROWS, DIM, padding_idx=-2),
    "by frequency": lambda: nn.Embedding(ROWS, DIM, scale_grad_by_freq=True),
    "limited": lambda: nn.Embedding(ROWS, DIM, max_norm=1.0),
    "sum of bags": lambda: nn.EmbeddingBag(ROWS, DIM, mode="sum"),
    "mean of bags": lambda: nn.EmbeddingBag(ROWS, DIM, padding_idx=3),
    "largest of bags": lambda: nn.EmbeddingBag(ROWS, DIM, mode="max"),
}


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("name", TABLES)
def test_steps_are_those_of_the_plain_call(name, first):
    fast, plain = (Trained(TABLES[name], p, first=first) for p in (True, False))
    for i in range(4):
        one, other = fast.step(*batch(i)), plain.step(*batch(i))
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-4)
    for path, array in plain.weights.items():
        np.testing.assert_allclose(fast.weights[path], array, atol=1e-4, err_msg=path)
    report = fast.step.explain()
    assert "one plan" in report
    # a table whose rows are shortened is changed before it is read
    assert ("embedding" in report) is (name == "limited"), report


@pytest.mark.parametrize("name", ["plain", "mean of bags"])
def test_the_bits_are_the_same_for_any_number_of_threads(name):
    known, found = burnish.num_threads(), []
    try:
        for threads in (1, 2, 3):
            burnish.set_num_threads(threads)
            made = Trained(TABLES[name], True)
            for i in range(3):
                made.step(*batch(i))
            found.append(made.weights)
    finally:
        burnish.set_num_threads(known)
    for path, array in found[0].items():
        for other in found[1:]:
            np.testing.assert_array_equal(array, other[path], path)


def test_a_number_of_no_row_changes_nothing():
    made = Trained(TABLES["plain"], True)
    for i in range(2):
        made.step(*batch(i))
    before, count = made.weights, made.rate.count
    ids, factor = batch(2)
    wrong = np.array(ids.numpy())
    wrong[-1, -1] = ROWS
    for _ in range(2):
        with pytest.raises(InputError, match=f"expected ids from 0 to {ROWS - 1}"):
            made.step(Tensor(wrong), factor)
    for path, array in before.items():
        np.testing.assert_array_equal(made.weights[path], array, path)
    plain = Trained(TABLES["plain"], False)
    for i in range(2):
        plain.step(*batch(i))
    assert made.rate.count == count
    np.testing.assert_allclose(
        made.step(ids, factor).numpy(), plain.step(ids, factor).numpy(), rtol=1e-4
    )


def test_a_number_of_no_row_draws_what_the_plain_call_draws():
    def losses(planned):
        burnish.seed(0)
        table, head = nn.Embedding(ROWS, DIM), nn.Linear(DIM, 3)
        net = nn.Sequential(table, nn.Dropout(0.5), head).to("cpu:autodiff")
        rule, drop = optim.SGD(), nn.Dropout(0.3).train()

        def step(factor, ids):
            loss = (net(ids) * drop(factor)).sum()
            rule.step(0.1, net, loss.backward())
            return loss

        def first(factor, ids):  # a draw before the lookup
            return step(drop(factor), ids)

        call = burnish.compile(first) if planned else first
        factor, given = Tensor(np.ones((COUNT, 3), np.float32)), np.arange(COUNT)
        found = [call(factor, Tensor(given)).item() for _ in range(2)]
        with pytest.raises(InputError):
            call(factor, Tensor(given + ROWS - 1))
        return [*found, call(factor, Tensor(given)).item()]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


def test_a_step_that_updates_nothing_says_which_numbers_have_a_row():
    table = nn.Embedding(ROWS, DIM).to("cpu:autodiff")

    @burnish.compile
    def gradient(ids):
        return table.weight.grad((table(ids) ** 2).sum().backward())

    gradient(Tensor(np.arange(COUNT)))
    assert "nothing eagerly" in gradient.explain()
    with pytest.raises(InputError, match=f"expected ids from 0 to {ROWS - 1}"):
        gradient(Tensor(np.arange(COUNT) + ROWS - 1))


def test_a_lookup_behind_an_update_runs_eagerly():
    """Where a number is of no row, the first update has happened already."""
    found = []
    for planned in (True, False):
        one, other = (Trained(TABLES["plain"], False).model for _ in range(2))
        rules = optim.SGD(), optim.SGD()

        def step(ids, factor, one=one, other=other, rules=rules):
            losses = []
            for rule, model in zip(rules, (one, other), strict=True):
                losses.append((model(ids) * factor).sum())
                rule.step(0.1, model, losses[-1].backward())
            return losses

        fast = burnish.compile(step) if planned else step
        for i in range(3):
            fast(*batch(i))
        found.append([np.array(m.table.weight.data) for m in (one, other)])
        if planned:
            assert "changed" in fast.explain()
    np.testing.assert_allclose(*found, atol=1e-5)


def test_a_step_is_cut_behind_its_lookups_alone():
    """The look at the classes comes before them."""
    model, rule = Trained(TABLES["plain"], False).model, optim.Adam()

    @burnish.compile
    def step(ids, classes):
        loss = nn.cross_entropy(model(ids), classes.reshape(-1))
        rule.step(0.1, model, loss.backward())
        return loss

    ids, classes = batch(0)[0], Tensor(np.arange(COUNT).reshape(1, COUNT) % 3)
    losses = [step(ids, classes).item() for _ in range(5)]
    assert losses[-1] < losses[0]
    lookups, rest = step._steps.known[0]._plan.segments
    assert lookups.notes
    assert rest.updates


def test_numbers_that_are_computed():
    model = nn.Embedding(ROWS, DIM).to("cpu:autodiff")
    rule = optim.SGD()

    @burnish.compile
    def step(x):
        rows = model(ops.argmax(x, axis=-1))
        rule.step(0.0, model, (rows * 2).sum().backward())
        return rows

    x = np.random.default_rng(0).normal(size=(4, ROWS)).astype(np.float32)
    for _ in range(2):
        wanted = np.array(model.weight.data)[x.argmax(-1)]
        np.testing.assert_array_equal(step(Tensor(x)).numpy(), wanted)
