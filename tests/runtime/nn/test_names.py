"""Every public name is tested; constructors are PyTorch's wherever PyTorch has them."""

import inspect
import re
from pathlib import Path

import pytest

from burnish import nn
from burnish.nn.losses.criterion import Criterion

LAYERS = [
    name
    for name in nn.__all__
    if inspect.isclass(item := getattr(nn, name)) and issubclass(item, nn.Module)
]
# dtype comes last; no device; nothing is done in place, nothing is sparse
LEFT_OUT = {
    "device",
    "dtype",
    "inplace",
    "size_average",
    "reduce",
    "_weight",
    "_freeze",
}
LEFT_OUT |= {"sparse", "min_value", "max_value", "enable_nested_tensor", "mask_check"}
ADDED = {"label_smoothing", "antialias", "peepholes", "reset_after", "transposed"}
ANYTHING = {"args", "kwargs"}


@pytest.mark.parametrize("name", nn.__all__)
def test_a_public_name_says_what_it_is_for(name):
    item = getattr(nn, name)
    assert item.__doc__
    if inspect.isclass(item):
        assert item.__doc__ != nn.Module.__doc__ or item is nn.Module


def test_every_public_name_is_tested():
    """Each stands in some test; a loss function is tested by its layer's name."""
    pages = Path(__file__).parent.parent.parent.rglob("*.py")
    words = {word for page in pages for word in re.findall(r"\w+", page.read_text())}
    words |= {"QLora", "Reparameterized"}  # what `apply_qlora` and `apply_lora` make
    words |= {layer.function.__name__ for layer in Criterion.__subclasses__()}
    assert set(nn.__all__) <= words


def options(kind):
    """Names and defaults of a constructor's arguments."""
    return {
        name: p.default
        for name, p in inspect.signature(kind).parameters.items()
        if name not in LEFT_OUT
    }


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYERS)
def test_constructors_are_torchs(name):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name, None)
    if theirs is None:
        pytest.skip("PyTorch has no such layer")
    if name in ("RNN", "LSTM", "GRU"):  # they say *args: the base class says what
        want = options(torch.nn.RNNBase)
        del want["mode"]
        want = want | {"nonlinearity": "tanh"}
    else:
        want = options(theirs)
    got = options(getattr(nn, name))
    got = {k: v for k, v in got.items() if k in want or k not in ADDED}
    if ANYTHING & want.keys():
        return
    if name in ("RNN", "LSTM", "GRU"):
        assert got.items() <= want.items()
        return
    assert list(got) == list(want)
    for option, default in got.items():
        if option == "activation":
            assert getattr(torch.nn.functional, default) is want[option]
        elif option == "dim" and want[option] is None:
            assert default == -1  # PyTorch guesses, and warns that it does
        else:
            assert default == want[option]
