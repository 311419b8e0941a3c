"""Every pass has a twin: the same numbers with it off."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

from burnish.codegen import passes
from burnish.codegen.ops import find
from burnish.codegen.passes.fuse import SINCE
from tests.codegen.passes.models import (
    RANDOM,
    model_of,
    prepared,
    twin,
    value,
)

X = RANDOM.standard_normal((2, 3, 8)).astype(np.float32)

ACTIVATIONS = {
    "Gelu": [
        """s = Constant<value_float=1.4142135>() h = Constant<value_float=0.5>()
        o = Constant<value_float=1.0>() d = Div(x, s) e = Erf(d) p = Add(e, o)
        m = Mul(x, p) y = Mul(m, h)""",
        """s = Constant<value_float=0.70710677>() h = Constant<value_float=0.5>()
        o = Constant<value_float=1.0>() d = Mul(s, x) e = Erf(d) p = Add(o, e)
        m = Mul(h, x) y = Mul(p, m)""",
        """k = Constant<value_float=0.7978846>() c = Constant<value_float=0.044715>()
        t = Constant<value_float=3.0>() h = Constant<value_float=0.5>()
        o = Constant<value_float=1.0>() a = Pow(x, t) b = Mul(a, c) d = Add(x, b)
        e = Mul(d, k) f = Tanh(e) p = Add(f, o) m = Mul(x, h) y = Mul(m, p)""",
    ],
    "Swish": [
        "s = Sigmoid(x) y = Mul(x, s)",
        "a = Constant<value_float=1.702>() m = Mul(x, a) s = Sigmoid(m) y = Mul(s, x)",
    ],
    "HardSwish": [
        "s = HardSigmoid<alpha=0.16666667>(x) y = Mul(x, s)",
        """t = Constant<value_float=3.0>() z = Constant<value_float=0.0>()
        s = Constant<value_float=6.0>() a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c)
        y = Div(m, s)""",
    ],
    "Mish": ["s = Softplus(x) t = Tanh(s) y = Mul(x, t)"],
    "Softplus": ["o = Constant<value_float=1.0>() e = Exp(x) a = Add(e, o) y = Log(a)"],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(k, text) for k, texts in ACTIVATIONS.items() for text in texts]
)
def test_activations_are_one_operator_again(kind, text):
    left, _ = twin(model_of(text, x="2,3,8"), x=X)
    assert left == [kind]


def test_a_fused_node_newer_than_the_model_has_its_own_version():
    model = model_of(ACTIVATIONS["Swish"][0], x="2,3,8")
    passes.run(model)
    assert model.graph[0].version == 24
    assert model.opset_imports[""] == 18


def test_scope_and_name_of_the_root_are_inherited():
    model = model_of("s = Sigmoid(x) y = Mul(x, s)", x="2,3,8")
    model.graph[1].name = "/act/Mul"
    model.graph[1].metadata_props["scope"] = "act"
    passes.run(model)
    assert model.graph[0].name == "/act/Mul"
    assert model.graph[0].metadata_props["scope"] == "act"


def test_every_form_is_fused_into_an_operator_with_an_import_rule():
    assert [kind for kind in SINCE if find("", kind, SINCE[kind]) is None] == []


DECLINED = {
    "'s' is used elsewhere too": (
        "Swish",
        "s = Sigmoid(x) m = Mul(x, s) y = Add(m, s)",
    ),
    "HardSigmoid's alpha": (
        "HardSwish",
        "s = HardSigmoid<alpha=0.2>(x) y = Mul(x, s)",
    ),
    "expected 0.5, got 0.4": (
        "Gelu",
        ACTIVATIONS["Gelu"][1].replace("=0.5>", "=0.4>"),
    ),
    "expected 1, got 2": (
        "Softplus",
        ACTIVATIONS["Softplus"][0].replace("=1.0>", "=2.0>"),
    ),
    "expected one x, got 'r' and 'x'": (
        "Mish",
        "s = Softplus(x) t = Tanh(s) r = Relu(x) y = Mul(r, t)",
    ),
}


@pytest.mark.parametrize("says", DECLINED)
def test_a_declined_form_says_why(says):
    kind, text = DECLINED[says]
    left, lines = twin(model_of(text, x="2,3,8"), x=X)
    assert kind not in left
    assert any(f"not {kind}" in line and says in line for line in lines)


CENTRE = "d = Sub(x, m)"
WEIGHTS = {
    "g": RANDOM.standard_normal(8).astype(np.float32),
    "b": RANDOM.standard_normal(8).astype(np.float32),
}
LAYER = """a = Constant<value_ints=[-1]>() t = Constant<value_float=2.0>()
e = Constant<value_float=1e-5>() m = ReduceMean(x, a) d = Sub(x, m)"""
NORMS = {
    "scale and bias": (
        f"""{LAYER} p = Pow(d, t) v = ReduceMean(p, a) w = Add(v, e) s = Sqrt(w)
        n = Div(d, s) q = Mul(n, g) y = Add(q, b)""",
        ["LayerNormalization"],
    ),
    "two subtractions, a reciprocal": (
        f"""{LAYER} d2 = Sub(x, m) p = Mul(d2, d2) v = ReduceMean(p, a)
        w = Add(e, v) s = Sqrt(w) r = Reciprocal(s) n = Mul(d, r) q = Mul(g, n)
        y = Add(b, q)""",
        ["LayerNormalization"],
    ),
    "scale alone": (
        f"""{LAYER} p = Pow(d, t) v = ReduceMean(p, a) w = Add(v, e) s = Sqrt(w)
        n = Div(d, s) y = Mul(n, g)""",
        ["LayerNormalization"],
    ),
    "root mean square": (
        """a = Constant<value_ints=[-1]>() t = Constant<value_float=2.0>()
        o = Constant<value_float=1.0>() e = Constant<value_float=1e-5>() p = Pow(x, t)
        v = ReduceMean(p, a) w = Add(v, e) s = Sqrt(w) r = Div(o, s) n = Mul(x, r)
        y = Mul(g, n)""",
        ["RMSNormalization"],
    ),
    "epsilon outside of the root": (
        f"""{LAYER} p = Pow(d, t) v = ReduceMean(p, a) s = Sqrt(v) w = Add(s, e)
        n = Div(d, w) q = Mul(n, g) y = Add(q, b)""",
        ["ReduceMean", "Sub", "Pow", "ReduceMean", "Sqrt", "Add", "Div", "Mul", "Add"],
    ),
}


@pytest.mark.parametrize("case", NORMS)
def test_norms(case):
    text, expected = NORMS[case]
    left, _ = twin(model_of(text, weights=WEIGHTS, x="2,3,8"), x=X)
    assert left == expected


def test_norm_over_the_wrong_axis_is_declined():
    text = NORMS["scale and bias"][0].replace("[-1]", "[1]")
    left, lines = twin(model_of(text, weights=WEIGHTS, x="2,3,8"), x=X)
    assert "LayerNormalization" not in left
    assert any("not over the last ones" in line for line in lines)


def test_norm_without_scale_is_burnishs_own():
    text = f"""{LAYER} p = Pow(d, t) v = ReduceMean(p, a) w = Add(v, e) s = Sqrt(w)
    y = Div(d, s)"""
    model = model_of(text, x="2,3,8")
    passes.run(model)
    node = model.graph[0]
    assert (node.domain, node.op_type) == ("burnish", "LayerNormalization")
    assert len(node.inputs) == 1


def test_product_and_bias_are_a_linear_layer():
    weights = {
        "w": RANDOM.standard_normal((8, 5)).astype(np.float32),
        "b": np.ones(5, "f"),
    }
    text = "h = MatMul(x, w) y = Add(b, h)"
    left, _ = twin(model_of(text, weights=weights, x="2,3,8"), x=X)
    assert left == ["Linear"]


def test_a_bias_that_broadcasts_the_product_is_not():
    weights = {"w": np.ones((8, 5), "f"), "b": np.ones((4, 1, 1, 5), "f")}
    text = "h = MatMul(x, w) y = Add(b, h)"
    left, lines = twin(model_of(text, weights=weights, x="2,3,8"), x=X)
    assert left == ["MatMul", "Add"]
    assert any("(5,)" in line for line in lines)


# identities

KEPT = {
    "a broadcast": ("y = Add(x, z)", {"z": np.zeros((4, 1, 1, 8), "f")}),
    "a broadcast by one": ("y = Mul(x, z)", {"z": np.ones((4, 1, 1, 1), "f")}),
    "a weight that happens to be one": ("y = Mul(x, z)", {"z": np.ones(8, "f")}),
    "a scalar weight that happens to be one": ("y = Mul(x, z)", {"z": np.float32(1)}),
    "a real cast": ("h = Cast<to=11>(x) y = Cast<to=1>(h)", {}),
    "a reshape": ("y = Reshape(x, z)", {"z": np.array([2, 24])}),
    "dropout": ("y = Dropout(x)", {}),
    "a choice that broadcasts": (
        "y = Where(c, z, x)",
        {"c": np.array(True), "z": np.float32([7])},
    ),
    "a choice by element": ("y = Where(c, x, z)", {"c": [True] * 8, "z": X + 1}),
    "the only way from input to output": ("y = Identity(x)", {}),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_is_no_identity_stays(case):
    text, weights = KEPT[case]
    model = model_of(text, weights=weights, x="2,3,8")
    count = len(model.graph)
    left, _ = twin(model, passes.drop_identities, x=X)
    assert len(left) == count


IDENTITIES = [
    ("Identity(x)", {}),
    ("Cast<to=1>(x)", {}),
    ("Transpose<perm=[0,1,2]>(x)", {}),
    ("Concat<axis=1>(x)", {}),
    ("Reshape(x, z)", {"z": np.array([2, 3, 8])}),
    ("Expand(x, z)", {"z": np.array([1, 1])}),
    ("Tile(x, z)", {"z": np.array([1, 1, 1])}),
    ("Pad(x, z)", {"z": np.zeros(6, np.int64)}),
    ("Sum(x)", {}),
]


@pytest.mark.parametrize(("call", "weights"), IDENTITIES)
@pytest.mark.parametrize("form", ["h = {} y = Neg(h)", "x1 = Neg(x) y = {}"])
def test_identities_go(call, weights, form):
    call = call.replace("(x", "(x1") if form.startswith("x1") else call
    model = model_of(form.format(call), weights=weights, x="2,3,8")
    left, _ = twin(model, passes.drop_identities, x=X)
    assert left == ["Neg"]
    assert model.graph.outputs[0].name == "y"


@pytest.mark.parametrize(
    "call",
    [("c = Not(t)", "Where(c, z, x)"), ("c = Identity(t)", "Where(c, x, z)")],
)
def test_a_choice_that_is_known_goes(call):
    """Keras' loops ask at each step whether the sequence has ended."""
    text = f"{call[0]} h = {call[1]} y = Neg(h)"
    weights = {"t": np.array(True), "z": np.float32([7])}
    steps = (passes.fold_constants, passes.drop_identities)
    left, _ = twin(model_of(text, weights=weights, x="2,3,8"), *steps, x=X)
    assert left == ["Neg"]


def test_a_negation_that_is_negated_goes():
    text = "c = Greater(x, z) n = Not(c) m = Not(n) h = Where(m, x, z) y = Neg(h)"
    model = model_of(text, weights={"z": np.float32([0])}, x="2,3,8")
    left, _ = twin(model, passes.drop_identities, passes.drop_dead, x=X)
    assert left == ["Greater", "Where", "Neg"]


@pytest.mark.parametrize(("op_type", "number"), [("Mul", 1), ("Div", 1), ("Sub", 0)])
def test_operations_with_a_neutral_number_go(op_type, number):
    text = f"c = Constant<value_float={number}.0>() h = {op_type}(x, c) y = Neg(h)"
    left, _ = twin(model_of(text, x="2,3,8"), passes.drop_identities, x=X)
    assert left == ["Neg"]


def test_a_reshape_of_two_open_dimensions_is_not_proven_equal():
    model = model_of("y = Relu(h) h = Reshape(x, z)", weights={}, x="a,b", z="2")
    for held in (model.graph.inputs[0], model.graph[1].outputs[0]):
        held.shape = ir.Shape(["a", "b"])
    passes.propagate_sizes(model, print)
    assert not passes.drop_identities(model, print)


def test_identities_of_a_shared_weight_leave_one_weight():
    text = "a = Identity(w) b = Identity(w) h = MatMul(x, a) y = MatMul(h, b)"
    model = model_of(text, weights={"w": np.eye(8, dtype="f") * 2}, x="2,3,8")
    twin(model, x=X)
    assert [len(v.uses()) for v in model.graph.initializers.values()] == [2]


# constants


def test_shape_of_a_static_value_is_known():
    text = """s = Shape(x) i = Constant<value_ints=[0]>() a = Gather(s, i)
    m = Constant<value_ints=[-1]>() c = Concat<axis=0>(a, m) y = Reshape(x, c)"""
    model = model_of(text, x="2,3,8")
    left, _ = twin(model, x=X)
    assert left == ["Reshape"]
    assert [
        v.const_value.numpy().tolist() for v in model.graph.initializers.values()
    ] == [[2, -1]]


def test_giants_are_not_made():
    text = """n = Constant<value_ints=[100000,100000]>() z = ConstantOfShape(n)
    r = ReduceSum(z) y = Add(x, r)"""
    model = model_of(text, x="2,3,8")
    passes.run(model)
    assert "ConstantOfShape" in [node.op_type for node in model.graph]


def test_random_operators_are_neither_folded_nor_merged():
    text = """a = RandomNormal<shape=[2,3,8]>() b = RandomNormal<shape=[2,3,8]>()
    h = Add(a, b) y = Add(h, x)"""
    model = model_of(text, x="2,3,8")
    passes.run(model)
    kinds = [node.op_type for node in model.graph]
    assert kinds == ["RandomNormal", "RandomNormal", "Add", "Add"]


def test_a_large_weight_changes_its_layout_lazily():
    weight = RANDOM.standard_normal((600, 600)).astype(np.float32)
    model = model_of(
        "t = Transpose(w) y = MatMul(x, t)", weights={"w": weight}, x="2,600"
    )
    left, _ = twin(model, x=np.eye(2, 600, dtype="f"))
    assert left == ["MatMul"]
    (held,) = model.graph.initializers.values()
    assert isinstance(held.const_value, ir.LazyTensor)
    np.testing.assert_array_equal(held.const_value.numpy(), weight.T)


def test_a_shared_large_weight_keeps_its_one_layout():
    weight = RANDOM.standard_normal((600, 600)).astype(np.float32)
    text = "t = Transpose(w) h = MatMul(x, t) y = MatMul(h, w)"
    model = model_of(text, weights={"w": weight}, x="2,600")
    passes.run(model)
    assert list(model.graph.initializers) == ["w"]


@pytest.mark.parametrize("text", ["e = Exp(w)", "e = Gather(w, i)", "e = Softmax(w)"])
def test_a_weight_behind_a_curve_or_a_choice_of_rows_stays_one(text):
    held = {"w": RANDOM.standard_normal((8, 8)).astype("f"), "i": np.arange(8) // 2}
    model = model_of(f"{text} y = Add(x, e)", weights=held, x="2,8,8")
    twin(model, x=RANDOM.standard_normal((2, 8, 8)).astype("f"))
    assert "w" in model.graph.initializers


def conditional(condition):
    def branch(name, op_type):
        nodes = [
            helper.make_node("Constant", [], ["k"], value_float=2.0),
            helper.make_node(op_type, ["x", "k"], [f"{name}_y"]),
        ]
        return helper.make_graph(nodes, name, [], [value(f"{name}_y", None)])

    node = helper.make_node(
        "If",
        ["p"],
        ["y"],
        name="if",
        then_branch=branch("t", "Add"),
        else_branch=branch("e", "Mul"),
    )
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", [2])],
        [value("y", [2])],
        [numpy_helper.from_array(np.array(condition), "p")],
    )
    imports = [helper.make_opsetid("", 18)]
    return prepared(helper.make_model(graph, opset_imports=imports, ir_version=9))


@pytest.mark.parametrize(("condition", "left"), [(True, "Add"), (False, "Mul")])
def test_if_of_known_condition_is_its_branch(condition, left):
    model = conditional(condition)
    kinds, _ = twin(model, x=np.array([1, 5], "f"))
    assert kinds == [left]
    assert model.graph.outputs[0].name == "y"


def test_bodies_are_folded_too():
    model = conditional(True)
    then = model.graph[0].attributes["then_branch"].as_graph()
    passes.fold_constants(model, print)
    assert [node.op_type for node in then] == ["Add"]


def test_dead_nodes_and_weights_go():
    text = "h = MatMul(x, w) y = Neg(x)"
    model = model_of(text, weights={"w": np.eye(8, dtype="f")}, x="2,3,8")
    passes.run(model, simplify=False)
    assert [node.op_type for node in model.graph] == ["Neg"]
    assert not model.graph.initializers
