"""Random trees of modules: the source loads their weights and gives them back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch
from torch import nn

from tests.harness.examples import examples
from tests.harness.weights_only import Made, saved

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

SIZES = st.integers(1, 9)
LEAVES = st.one_of(
    st.builds(nn.Linear, SIZES, SIZES, bias=st.booleans()),
    st.builds(
        nn.Conv2d, SIZES, SIZES, st.sampled_from([1, (2, 3)]), bias=st.booleans()
    ),
    st.builds(nn.ConvTranspose2d, SIZES, SIZES, st.just(3), bias=st.booleans()),
    st.builds(nn.Conv1d, st.just(4), st.just(8), st.just(3), groups=st.just(2)),
    st.builds(nn.BatchNorm2d, SIZES),
    st.builds(nn.LayerNorm, SIZES, bias=st.booleans()),
    st.builds(nn.Embedding, SIZES, SIZES),
    st.builds(nn.LSTM, SIZES, st.integers(2, 5), bidirectional=st.booleans()),
    st.builds(nn.GRUCell, SIZES, SIZES),
    st.builds(nn.MultiheadAttention, st.just(8), st.just(2)),
    st.builds(nn.PReLU, st.sampled_from([1, 4])),
    st.builds(nn.Bilinear, SIZES, SIZES, SIZES),
    st.builds(nn.ReLU),
    st.builds(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))),
    st.builds(lambda n: nn.ParameterList([torch.ones(n)] * n), SIZES),
)
WORDS = """
a b1 conv fc layers blocks q k v norm x-y 3 9 class encoder downsample weights self head
w1 w2 w3 _p A Linear nn Tensor ops model expert dim depth hidden vocab
"""
NAMES = st.sampled_from(WORDS.split())


def holding(parts: dict[str, nn.Module]) -> nn.Module:
    made = nn.Module()
    for name, part in parts.items():
        made.add_module(name, part)
    return made


TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(nn.ModuleList, st.lists(inner, min_size=1, max_size=4)),
        st.builds(lambda parts: nn.Sequential(*parts), st.lists(inner, max_size=4)),
        st.builds(holding, st.dictionaries(NAMES, inner, min_size=1, max_size=4)),
    ),
    max_leaves=12,
)


@settings(max_examples=examples(30), deadline=None)
@given(TREES, st.sampled_from(["some.pt", "some.safetensors"]))
def test_a_tree_of_any_modules(network: nn.Module, name: str) -> None:
    state = network.state_dict()
    if not state:
        return
    with tempfile.TemporaryDirectory() as folder:
        Made(saved(state, Path(folder) / name), Path(folder) / "out").check_values(
            network
        )


def test_what_is_shared_stays_shared_under_names_of_no_attribute(
    tmp_path: Path,
) -> None:
    one, other = torch.ones(9), torch.randn(4, 4)
    state = {f"conv.fc.self.{i}": one for i in range(3)}
    state |= {"conv.fc.x-y.weight": torch.randn(3, 4), "e.p.3": one, "e.p.7": one}
    state |= {"a.weight": other, "b.c.weight": other}
    model = Made(saved(state, tmp_path / "some.pt"), tmp_path / "out").model
    assert len(model.state_dict()) == 3
    ours = {name: tensor.data for name, tensor in model.named_tensors(False)}
    for name, tensor in state.items():
        assert (ours[name] == tensor.numpy()).all()
