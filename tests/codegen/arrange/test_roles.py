"""Values are named by what they are for, through the classes that hand them on."""

from __future__ import annotations

from tests.codegen.passes.forms import becomes, form
from tests.harness.source import check_source, floats, graph, node


def test_what_attention_is_given():
    text = """t = Transpose<perm=[0, 2, 1]>(b) s = MatMul(a, t) w = Softmax(s)
    o = MatMul(w, c) y = Add(o, a)"""
    source = becomes(form(text, a="2,3,4", b="2,3,4", c="2,3,4"))
    assert "ops.scaled_dot_product_attention(a, b, c, scale=1.0)" in source


def test_what_is_only_added_is_the_residual():
    nodes = [
        node("MatMul", "val_0 w", "h", "/first/dense/MatMul"),
        node("Relu", "h", "val_1", "/first/act/Relu"),
        node("MatMul", "val_1 v", "d", "/out/dense/MatMul"),
        node("Add", "d val_0", "y", "/out/Add"),
    ]
    weights = {"w": floats(4, 4), "v": floats(4, 4, seed=1)}
    check_source(
        graph(nodes, weights, val_0=("n", 4)),
        """
        def forward(self, x, residual):
            return self.dense(x) + residual
        """,
    )


def test_buffers_do_not_train():
    nodes = [node("Mul", "x rotary.inv_freq", "y", "/rotary/Mul")]
    weights = {"rotary.inv_freq": floats(4)}
    source = check_source(graph(nodes, weights, x=("n", 4)))
    assert "nn.Buffer" in source
    assert "nn.Param" not in source


def test_each_part_of_a_list_is_a_class_of_its_own():
    nodes = [
        node("MatMul", "val_0 block.0.w", "k", "/block/0/key/MatMul"),
        node("Transpose", "k", "t", "/block/0/Transpose", perm=[1, 0]),
        node("MatMul", "val_0 t", "s", "/block/0/MatMul"),
        node("Add", "s val_1", "p", "/block/0/Add"),
        node("Softmax", "p", "o", "/block/0/Softmax"),
        node("MatMul", "o val_0", "h", "/block/0/MatMul_1"),
        node("MatMul", "h block.1.v", "a", "/block/1/dense/MatMul"),
        node("Mul", "a val_2", "y", "/block/1/Mul"),
    ]
    weights = {"block.0.w": floats(4, 4), "block.1.v": floats(4, 4, seed=1)}
    sizes = {"val_0": (3, 4), "val_1": (3, 3), "val_2": (3, 4)}
    source = check_source(graph(nodes, weights, **sizes))
    assert "def forward(self, q, mask):" in source
    assert "def forward(self, h, x):" in source
