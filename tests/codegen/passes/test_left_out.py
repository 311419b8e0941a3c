"""Passes, each left out: the numbers equal those of the graph as it is in the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from burnish.codegen import passes
from burnish.codegen.pipeline import Options, generate, write
from tests.codegen.arrange.test_structure import encoder, pyramid
from tests.codegen.passes import test_concats as concats
from tests.codegen.passes import test_decided_branches as branches
from tests.codegen.passes import test_heads_apart as heads
from tests.codegen.passes import test_join_slices as slices
from tests.codegen.passes import test_loop_states as states
from tests.codegen.passes import test_merged_branches as merged
from tests.codegen.passes import test_recurrent as recurrent
from tests.codegen.passes import test_recurrent_loops as loops
from tests.codegen.passes import test_recurrent_steps as steps
from tests.codegen.passes import test_recurrent_unrolled as unrolled
from tests.codegen.passes import test_repeats as repeats
from tests.codegen.passes import test_share_parts as parts
from tests.codegen.passes import test_spatial_sizes as spatial
from tests.codegen.passes import test_unfolded as unfolded
from tests.codegen.passes import test_views as views
from tests.codegen.passes.forms import form
from tests.codegen.passes.rules import test_rotary as rotary
from tests.codegen.test_tensorflow import keras_resnet
from tests.harness.imported import load_class
from tests.harness.source import floats, graph, node

KEY = "pkg.onnxscript.optimizer.folded_from"
ROW = np.linspace(0.2, 0.7, 4, dtype=np.float32)


def _folded(name: str, array: np.ndarray, *origins: str) -> onnx.ModelProto:
    """A product with a constant that torch's exporter computed from others."""
    model = form(f"y = Mul(x, {name})", weights={name: array}, x="2,4")
    model.producer_name, model.graph.node[0].name = "pytorch", "/Mul"
    noted = model.graph.value_info.add(name=name)
    noted.metadata_props.add(key=KEY, value=repr(list(origins)))
    return model


def _merged() -> onnx.ModelProto:
    """Two layers whose equal weights an exporter merged to one tensor."""
    made = [
        node("MatMul", "x onnx::MatMul_41", "a", "/l/l.0/fc/MatMul"),
        node("Relu", "a", "b", "/Relu"),
        node("MatMul", "b onnx::MatMul_41", "y", "/l/l.1/fc/MatMul"),
    ]
    return graph(made, {"onnx::MatMul_41": floats(4, 4)}, x=("batch", 4))


def _tied() -> onnx.ModelProto:
    """An embedding, and a head with the embedding's table transposed."""
    table = floats(7, 4)
    made = [
        node("Gather", "embed.weight ids", "h"),
        node("MatMul", "h onnx::MatMul_9", "y", "/head/MatMul"),
    ]
    model = graph(made, {"embed.weight": table, "onnx::MatMul_9": table.T}, ids=(2, 5))
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


def _conditional() -> onnx.ModelProto:
    return onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18]> g (float[2,4] x) => (float[2,4] y) {
            p = Constant<value_int=1>() q = Cast<to=9>(p)
            y = If(q) <then_branch = t () => (float[2,4] a) { a = Tanh(x) },
                       else_branch = e () => (float[2,4] b) { b = Relu(x) }>
        }"""
    )


def _upsampled() -> onnx.ModelProto:
    return form(repeats.UPSAMPLED, x="2,3,6,5", weights=repeats.WEIGHTS)


def _channels_last() -> onnx.ModelProto:
    into, back = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
    text = f"""a = {into}(x) b = Conv(a, v) c = {back}(b) d = Relu(c) e = {into}(d)
        f = Conv(e, w) y = {back}(f)"""
    return form(
        text, weights={"v": floats(4, 3, 1, 1), "w": floats(2, 4, 1, 1)}, x="2,5,6,3"
    )


def _attentions() -> onnx.ModelProto:
    """Two attentions whose masks are the same sum."""
    text = """m = Add(near, far) a = Attention(q, k, v, m)
        n = Add(near, far) b = Attention(a, k, v, n) y = Add(a, b)"""
    shapes = dict.fromkeys("qkv", "2,2,5,4") | dict.fromkeys(("near", "far"), "5,5")
    return form(text, opset=23, **shapes)


CASES: dict[str, Callable[[], onnx.ModelProto]] = {
    "later_inputs": lambda: form("y = Clip<max=0.5>(x)", opset=9, x="2,4"),
    "decide_branches": branches.cell,
    "inline_constant_if": _conditional,
    "merge_branches": lambda: merged.of(
        "() => (p) { p = MatMul(x, m) }", "() => (q) { q = MatMul(x, m) }"
    ),
    "mark_folded": lambda: _folded("add_12", ROW, "full_1", "val_3"),
    "unfold_offsets": lambda: unfolded.folded(unfolded.biases(1, 4, 1)),
    "unfold_weights": lambda: _folded("exp", ROW, "scale"),
    "untie_weights": _merged,
    "share_parts": lambda: form(parts.STEPS, weights={"b": parts.B}, x="3,2"),
    "propagate_sizes": lambda: form(views.SIZES["of an expand"][0], x="b,t,8"),
    "softmax_rows": lambda: form("y = Softmax<axis=2>(x)", opset=12, x="2,3,4"),
    "drop_identities": lambda: form("a = Identity(x) y = Relu(a)", x="2,4"),
    "repeat_elements": _upsampled,
    "join_slices": lambda: slices.unrolled(3),
    "channels_first": _channels_last,
    "spatial_sizes": lambda: form(
        spatial.RESIZED.format(how='mode="linear"'), x="2,3,5,7"
    ),
    "recurrent_loops": lambda: loops.loop_over_time("RNN"),
    "loop_states": states.masked,
    "same_states": states.fixed,
    "unrolled_layers": lambda: unrolled.steps(unrolled.LAYERS["GRU, every h"][0]),
    "recurrent_steps": lambda: steps.written_step(steps.STEPS["LSTM"][0]),
    "stack_recurrent": lambda: form(
        recurrent.two("LSTM"), weights=recurrent.weights("LSTM", 3, 4), x="time,batch,3"
    ),
    "share_angles": lambda: form(rotary.TWICE, opset=23, **rotary.INPUTS),
    "unmerge_heads": lambda: form(
        heads.FORMS["products of three axes"][0], **heads.QKV
    ),
    "merge_views": lambda: form(views.CHAINS["there and back"][0], x="b,t,8"),
    "fuse_known_forms": lambda: form("a = Sigmoid(x) y = Mul(x, a)", x="2,4"),
    "share_masks": _attentions,
    "tie_weights": _tied,
    "chain_concats": lambda: form(concats.CASES[0][0], x="2,3"),
    "fold_constants": lambda: form(
        "k = Constant<value_float=4.0>() r = Sqrt(k) y = Mul(x, r)", x="2,4"
    ),
}
"""A model that each pass changes; those that cannot be left out have none."""
#: Models of the corpus; of each, every pass that changes it is left out.
CORPUS: dict[str, Callable[[Path], onnx.ModelProto]] = {
    "encoder": lambda _: encoder(2),
    "pyramid": lambda _: pyramid(),
    "keras_resnet": lambda folder: onnx.load(keras_resnet(folder / "keras.onnx")),
}
LEFT_OUT = [step for step in passes.PASSES if step not in passes.NEEDED]


def _given(model: onnx.ModelProto) -> list[np.ndarray]:
    """Seeded inputs; open dimensions are 2, a cell's number of steps is 1."""
    rng, given = np.random.default_rng(0), []
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            kind = value.type.tensor_type
            shape = [
                dim.dim_value or {"t": 1}.get(dim.dim_param, 2)
                for dim in kind.shape.dim
            ]
            if kind.elem_type == onnx.TensorProto.FLOAT:
                given.append(rng.normal(size=shape).astype(np.float32))
            elif kind.elem_type == onnx.TensorProto.BOOL:
                given.append(np.ones(shape, np.bool_))
            else:
                given.append(rng.integers(0, 7, shape))
    return given


class _Runs:
    """Outputs of one model's sources."""

    def __init__(self, model: onnx.ModelProto, folder: Path):
        self.path, self.given = folder / "net.onnx", _given(model)
        onnx.save(model, self.path)

    def __call__(self, **options: bool) -> tuple[list[np.ndarray], list[str]]:
        """The outputs, and the lines of `--explain`."""
        lines: list[str] = []
        made = generate(self.path, Options(**options), explain=lines.append)
        files = write(made, self.path.parent, existing="force")
        kind = load_class(files[0])
        model = kind.from_file(files[1]) if len(files) > 1 else kind()
        found = model(*self.given)
        return [
            np.asarray(y) for y in (found if type(found) is tuple else (found,))
        ], lines


def _at_work(lines: list[str]) -> set[str]:
    """The passes that changed something, of the lines of `--explain`."""
    return {
        line.partition(": ")[0] for line in lines if not line.endswith(": no change")
    }


def _without(step: passes.Pass) -> tuple[passes.Pass, ...]:
    return tuple(each for each in passes.PASSES if each is not step)


def _check(found: list[np.ndarray], expected: list[np.ndarray], name: str) -> None:
    for y, wanted in zip(found, expected, strict=True):
        assert y.shape == wanted.shape, name
        np.testing.assert_allclose(y, wanted, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize("step", LEFT_OUT, ids=lambda step: step.__name__)
def test_with_the_pass_and_without_it_the_numbers_are_those_of_the_file(
    step: passes.Pass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _Runs(CASES[step.__name__](), tmp_path)
    expected, _ = runs(simplify=False)
    found, lines = runs()
    assert step.__name__ in _at_work(lines), lines
    _check(found, expected, "all passes")
    monkeypatch.setattr(passes, "PASSES", _without(step))
    _check(runs()[0], expected, "without it")


@pytest.mark.parametrize("name", CORPUS)
def test_numbers_of_the_corpus_without_each_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _Runs(CORPUS[name](tmp_path), tmp_path)
    expected, _ = runs(simplify=False)
    found, lines = runs(flat=True)
    _check(found, expected, "all passes")
    steps = [step for step in LEFT_OUT if step.__name__ in _at_work(lines)]
    assert len(steps) > 1
    for step in steps:
        with monkeypatch.context() as patch:
            patch.setattr(passes, "PASSES", _without(step))
            found, _ = runs(flat=True)
        _check(found, expected, step.__name__)


def test_each_pass_has_a_case() -> None:
    assert list(CASES) == [step.__name__ for step in LEFT_OUT]
