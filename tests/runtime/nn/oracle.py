"""The table harness for layers: one row is a layer that PyTorch has too.

    LAYERS = [layer("Linear", (2, 5), 5, 4, bias=False)]

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("row", LAYERS, ids=str)
    def test_layer(row, dtype):
        row.check(dtype)

An input is a shape (random values) or an array (floats are cast to the dtype at hand).
"""

import numpy as np

from burnish import Tensor, nn

DTYPES = ["float64", "float32"]
TOLERANCES = {"float64": (1e-7, 1e-10), "float32": (2e-4, 2e-5)}


class Row:
    """A layer's name and arguments, and what it is called with.

    call: options of the call, arrays among them. steps: how many calls in training.
    """

    def __init__(self, name, inputs, args, options, call=None):
        self.name, self.args, self.options = name, args, options
        self.inputs = [inputs] if isinstance(inputs, tuple) else inputs
        self.call = call or {}

    def __str__(self):
        parts = [*map(repr, self.args)]
        parts += [f"{name}={value!r}" for name, value in self.options.items()]
        return f"{self.name}({', '.join(parts)})"

    def but(self, call):
        """The same layer, called with more."""
        return Row(self.name, self.inputs, self.args, self.options, call)

    def arrays(self, dtype):
        rng = np.random.default_rng(1)
        found = [
            rng.normal(size=item) * 2 if isinstance(item, tuple) else item
            for item in self.inputs
        ]
        return [a.astype(dtype) if a.dtype.kind == "f" else a for a in found]

    def check(self, dtype="float64"):
        """Inference; then training: outputs, all gradients, buffers."""
        import torch

        ours, theirs = pair(self.name, self.args, self.options, dtype)
        arrays = self.arrays(dtype)
        tensors = [torch.tensor(a) for a in arrays]
        mine = {k: Tensor(v) if is_array(v) else v for k, v in self.call.items()}
        its = {k: torch.tensor(v) if is_array(v) else v for k, v in self.call.items()}
        got = flat(ours(*map(Tensor, arrays), **mine))
        want = flat(theirs.eval()(*tensors, **its))
        for one, other in zip(got, want, strict=True):
            compare(one, other, "inference", dtype)
        ours, theirs = ours.to("cpu:autodiff"), theirs.train()
        check_gradients(ours, theirs, arrays, mine, its, dtype)


def layer(name, inputs, *args, **options):
    """One row: inputs is a shape, or a list of shapes and arrays."""
    return Row(name, inputs, args, options)


def is_array(value):
    return isinstance(value, np.ndarray)


def pair(name, args, options, dtype="float64"):
    """Our layer and torch's, with torch's values, none of them 0 or 1."""
    import torch

    torch.manual_seed(0)
    width = getattr(torch, dtype)
    theirs = getattr(torch.nn, name)(*args, **options).to(width)
    for value in theirs.state_dict().values():
        if value.dtype.is_floating_point and value.ndim:
            value += 0.1 * torch.rand_like(value)
    return ours_like(theirs, getattr(nn, name), args, options, dtype), theirs


def ours_like(theirs, kind, args, options, dtype="float64"):
    """Our layer with the state of torch's."""
    state = {k: v.numpy().copy() for k, v in theirs.state_dict().items()}
    ours = kind(*args, **options, **({"dtype": dtype} if state else {}))
    assert list(ours.state_dict()) == list(state)
    return ours.load_state_dict(state)


def flat(results):
    """Nested results as one list, those that are None left out."""
    if isinstance(results, tuple | list):
        return [part for item in results for part in flat(item)]
    return [] if results is None else [results]


def compare(ours, theirs, what, dtype="float64"):
    """Shape, dtype and values of a tensor of ours and one of torch's."""
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape, what
    assert ours.dtype == theirs.dtype, what
    rtol, atol = TOLERANCES[dtype]
    scale = max(1.0, float(np.abs(theirs).max(initial=0))) if dtype == "float32" else 1
    np.testing.assert_allclose(ours.numpy(), theirs, rtol, atol * scale, err_msg=what)


def check_gradients(ours, theirs, arrays, mine, its, dtype):
    """In training: outputs, gradients of inputs and parameters, buffers."""
    import torch

    leaves = [
        Tensor(a).require_grad() if a.dtype.kind == "f" else Tensor(a) for a in arrays
    ]
    given = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    got, want = flat(ours(*leaves, **mine)), flat(theirs(*given, **its))
    rng = np.random.default_rng(2)
    loss, expected = Tensor(np.zeros((), dtype)), torch.zeros((), dtype=given[0].dtype)
    for one, other in zip(got, want, strict=True):
        compare(one, other, "training", dtype)
        if other.requires_grad:
            g = rng.normal(size=other.shape).astype(dtype)
            loss = loss + (one * g).sum()
            expected = expected + (other * torch.tensor(g)).sum()
    if not expected.requires_grad:
        assert not loss.requires_grad
        return
    expected.backward()
    gradients = loss.backward()
    for i, (leaf, other) in enumerate(zip(leaves, given, strict=True)):
        if other.grad is not None:
            compare(leaf.grad(gradients), other.grad, f"gradient of input {i}", dtype)
    own = dict(ours.named_parameters())
    for name, param in theirs.named_parameters():
        if param.grad is None:
            assert own[name].grad(gradients) is None
            continue
        compare(own[name].grad(gradients), param.grad, f"gradient of {name}", dtype)
    for name, buffer in theirs.named_buffers():
        compare(dict(ours.named_buffers())[name], buffer, name, dtype)
