"""Traits of operators: each operator declares them once, and they are true."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import onnx
import pytest

from burnish import Tensor, nn, ops
from burnish.codegen.ops import (
    Trait,
    argument_roles,
    having,
    macs_of,
    neutral_of,
    registry,
    role_names,
    shapes_of,
    traits_of,
    twins,
    weights_of,
)
from burnish.codegen.ops.rule.traits import SHAPES
from tests.harness.source import floats, graph, node, source_of

OURS = {
    operator: rules
    for operator, found in registry.items()
    if (rules := [rule for rule in found if rule.is_ours])
}


@pytest.mark.parametrize("operator", OURS, ids=".".join)
def test_the_newest_rule_declares_what_happens_to_the_shape(
    operator: tuple[str, str],
) -> None:
    newest, *older = OURS[operator]
    assert sum(bool(newest.traits & shape) for shape in SHAPES) == 1
    assert not any(rule.traits or rule.shapes for rule in older)


#: Operators of ONNX whose results its own inference sizes, if anything can before the
#: model runs, and of Burnish, which take the place of nodes with a shape.
WITHOUT_TRANSFER = """
    AdaptiveAveragePool AffineGrid BeamSearch BlackmanWindow Col2Im Compress
    ConcatFromSequence Constant ConvInteger ConvTranspose CosineSimilarity DFT
    DeformConv DepthToSpace Det DynamicTimeWarping Einsum GLU GlobalLpPool GreedySearch
    GridSample HammingWindow HannWindow If ImageDecoder Loop LpPool MatMulInteger
    MaxRoiPool MaxUnpool MelWeightMatrix Multinomial NonMaxSuppression NonZero OneHot
    Optional OptionalGetElement OptionalHasElement PixelUnshuffle QLinearConv
    QLinearMatMul RandomNormal RandomUniform Recurrent RecurrentCell RoiAlign STFT
    Sampling Scan SequenceAt SequenceConstruct SequenceEmpty SequenceErase
    SequenceInsert SequenceLength Shape Size SpaceToDepth SplitToSequence
    StandardDeviation StringNormalizer StringSplit TfIdfVectorizer Tokenizer TopK Unique
    Upsample Variance
"""


def test_every_operator_declares_its_shape_transfer() -> None:
    lacking = {
        op_type
        for domain, op_type in OURS
        if domain in ("", "burnish") and shapes_of(domain, op_type) is None
    }
    assert lacking == set(WITHOUT_TRANSFER.split())


@pytest.mark.parametrize("function", twins())
def test_a_twin_computes_what_the_function_does(function: str) -> None:
    twin = twins()[function]
    target, layer = getattr(ops, twin.function), getattr(nn, twin.layer)
    options = inspect.signature(target).parameters
    known = list(inspect.signature(layer).parameters)
    assert all(name in options for name in twin.names)
    assert all(name in known for name in twin.names.values() if name)
    assert list(twin.names.values()).count("") <= 1
    given = {n: VALUES[n] for n in twin.names}
    first = [value for name, value in given.items() if not twin.names[name]]
    named = {twin.names[n]: value for n, value in given.items() if twin.names[n]}
    x = Tensor(np.linspace(-4, 7, 24, dtype=np.float32).reshape(2, 3, 4))
    np.testing.assert_array_equal(
        np.asarray(layer(*first, **named)(x)), np.asarray(target(x, **given))
    )


VALUES = {"alpha": 0.3, "negative_slope": 0.2, "axis": 2, "approximate": "tanh"}


def test_elementwise_operators_have_no_attribute_that_names_an_axis() -> None:
    for schema in onnx.defs.get_all_schemas():
        traits = traits_of(schema.domain, schema.name)
        if traits & (Trait.ELEMENTWISE | Trait.BROADCAST):
            assert not {"axis", "axes"} & set(schema.attributes), schema.name


@pytest.mark.parametrize("alpha", [0.2, 1 / 6])
def test_a_slope_that_the_layer_has_not_stays_a_call(
    alpha: float, tmp_path: Path
) -> None:
    """`nn.Hardsigmoid` has one slope, 1/6; ONNX's default is another."""
    weights = {f"net.{2 * n}.weight": floats(4, 4, seed=n) for n in range(3)}
    made, before = [], "x"
    for n in range(3):
        fc, act = f"/net/net.{2 * n}/MatMul", f"/net/net.{2 * n + 1}/HardSigmoid"
        made.append(node("MatMul", f"{before} net.{2 * n}.weight", f"h{n}", fc))
        made.append(node("HardSigmoid", f"h{n}", f"y{n}", act, alpha=alpha))
        before = f"y{n}"
    built = graph([*made, node("Identity", before, "y")], weights, x=("batch", 4))
    text, model = source_of(built, tmp_path, name="net")
    assert ("nn.Hardsigmoid()" in text) == (alpha != 0.2)
    x = floats(3, 4, seed=9)
    y = x
    for weight in weights.values():
        y = np.clip(alpha * (y @ weight) + 0.5, 0, 1)
    np.testing.assert_allclose(np.asarray(model(x)), y, 1e-5, 1e-6)


def test_operators_of_bounded_work_are_the_others() -> None:
    """Folding computes them; it must not meet a product of two large inputs."""
    counted = {op for (_, op), rules in OURS.items() if any(r.macs for r in rules)}
    assert counted - having(Trait.UNBOUNDED) == BOUNDED_BY_FOLDING


BOUNDED_BY_FOLDING = {"Gemm", "Linear", "MatMul", "MatMulInteger", "QLinearMatMul"}
"""Products, which folding computes where their operands are small."""


def test_products_convolutions_and_recurrences_declare_their_cost() -> None:
    heavy = Trait.PRODUCT | Trait.CONVOLUTION | Trait.RECURRENT
    for (domain, operator), rules in OURS.items():
        if any(rule.traits & heavy for rule in rules):
            assert macs_of(domain, operator), operator


def test_words_for_results_are_declared_with_the_rules() -> None:
    declared = {rule.role for rules in OURS.values() for rule in rules}
    assert declared == {"", "cos", "gate", "mask", "sin", "weights"}
    assert role_names()["ops.softmax"] == "weights"
    assert all(hasattr(ops, name.removeprefix("ops.")) for name in role_names())


def test_words_for_arguments_are_declared_with_the_rules() -> None:
    for name, roles in argument_roles().items():
        parameters = list(inspect.signature(getattr(ops, name[4:])).parameters)
        for argument, role in roles.items():
            found = parameters[argument] if isinstance(argument, int) else argument
            assert found in parameters
            assert found.removeprefix("attn_") == role


WEIGHTED = Trait.PRODUCT | Trait.CONVOLUTION | Trait.RECURRENT


def test_operators_of_layers_declare_which_inputs_are_weights() -> None:
    """The names that ONNX gives to them say so."""
    for op_type in having(WEIGHTED) - {"Linear"}:
        assert weights_of("", op_type), op_type
    for domain, op_type in OURS:
        if domain == "" and (places := weights_of(domain, op_type)):
            inputs = [value.name for value in onnx.defs.get_schema(op_type).inputs]
            names = {inputs[place].lower().removeprefix("input_") for place in places}
            assert names <= NAMES_OF_WEIGHTS, op_type


NAMES_OF_WEIGHTS = {"b", "c", "r", "w", "bias", "mean", "scale", "slope", "var"}


def _answers(op_type: str, *operands: np.ndarray) -> np.ndarray:
    inputs = ["a", "b"]
    kind = onnx.helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    made = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, inputs, ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info(n, kind, None) for n in inputs],
        [onnx.helper.make_tensor_value_info("y", kind, None)],
    )
    model = onnx.helper.make_model(made)
    feeds = dict(zip(inputs, operands, strict=True))
    (y,) = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(y)


@pytest.mark.parametrize(
    "op_type",
    [name for domain, name in OURS if not domain and neutral_of(name) is not None],
)
def test_neutral_operands_give_back_the_other_bit_by_bit(op_type: str) -> None:
    number = neutral_of(op_type)
    x = np.array([-np.inf, -1.5, -0.0, 0.0, 1e-45, 3, np.inf, np.nan], np.float32)
    x = x > 0 if isinstance(number, bool) else x
    given = np.array(number, x.dtype)
    assert _answers(op_type, x, given).tobytes() == x.tobytes()
    if op_type in having(Trait.COMMUTATIVE):
        assert _answers(op_type, given, x).tobytes() == x.tobytes()


_LOGICAL = ("And", "Or", "Xor")
DTYPES: dict[str, type] = {
    **dict.fromkeys(_LOGICAL, np.bool_),
    **{f"Bitwise{name}": np.int32 for name in _LOGICAL},
}


@pytest.mark.parametrize("op_type", sorted(having(Trait.COMMUTATIVE)))
def test_commutative_operators_do_not_see_the_order(op_type: str) -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 4, (2, 50)).astype(DTYPES.get(op_type, np.float32))
    assert _answers(op_type, a, b).tobytes() == _answers(op_type, b, a).tobytes()
