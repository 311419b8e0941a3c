"""One place decides whether an author gave a name: a table of cases."""

from __future__ import annotations

import pytest

from burnish import ops
from burnish.codegen.names import authorship
from burnish.codegen.scopes import scope_of_name

WEIGHTS = [
    # name, is a path, an exporter's, only a number
    ("encoder.layers.0.fc.weight", True, False, False),
    ("logit_scale", True, False, False),
    ("scale", True, False, False),
    ("conv1.weight", True, False, False),
    ("onnx::MatMul_412", False, True, False),
    ("val_31", True, True, False),
    ("scalar_tensor_default_2", True, True, False),
    ("attn_cast_3", True, True, False),
    ("mask_cast", True, True, False),
    ("dense_1/MatMul/ReadVariableOp:0", False, True, False),
    ("const_fold_opt__271", True, True, False),
    ("t41", True, False, True),
    ("_12", True, False, True),
    ("135", False, False, True),
    ("unsqueeze_5", True, False, True),
    ("Constant_output_0", True, False, True),
    ("Gather_2_output_0_1", True, False, True),
    ("W1", True, False, False),
]


@pytest.mark.parametrize(("name", "path", "exporters", "numbered"), WEIGHTS)
def test_names_of_weights(name, path, exporters, numbered):
    found = (
        authorship.is_path(name),
        authorship.is_exporters(name),
        authorship.is_numbered(name),
    )
    assert found == (path, exporters, numbered)


def test_an_operator_that_nothing_has_imported_yet_is_known(monkeypatch):
    monkeypatch.delitem(vars(ops), "unsqueeze", raising=False)
    assert authorship.is_numbered("unsqueeze_5")


HINTS = [
    ("attention_mask", True),
    ("logits", True),
    ("", False),
    ("_", False),
    ("val", False),
    ("getitem", False),
    ("_unsafe_view", False),
    ("view", False),
    ("mean", True),
    ("pad", True),
    ("mask", True),
    ("x1", False),
    ("/layer1/Relu_output_0", False),
    ("a_name_of_more_letters_than_a_person_types", False),
]


@pytest.mark.parametrize(("name", "given"), HINTS)
def test_names_of_values(name, given):
    assert authorship.is_hint(name) is given


LAYERS = [
    # what wrote the file, a layer as it calls it, whether it only counts
    ("PaddlePaddle", "conv2d_{}", True),
    ("PaddlePaddle", "batch_norm_{}", True),
    ("PaddlePaddle", "batch_norm2d_{}", True),
    ("PaddlePaddle", "conv2d_transpose_{}", True),
    ("PaddlePaddle", "linear_{}", True),
    ("PaddlePaddle", "layer_norm_{}", True),
    ("PaddlePaddle", "create_parameter_{}", True),
    ("MXNet", "convolution{}", True),
    ("MXNet", "fullyconnected{}", True),
    ("MXNet", "batchnorm{}", True),
    ("Caffe", "InnerProduct{}", True),
    ("Keras", "depthwise_conv2d_{}", True),
    ("Keras", "batch_normalization_{}", True),
    ("a person", "conv1_{}", False),
    ("a person", "stage{}", False),
    ("a person", "encoder_{}", False),
    ("a person", "layers.{}.fc", False),
    ("a person", "down{}_conv", False),
]


@pytest.mark.parametrize(("by", "form", "counted"), LAYERS)
def test_names_of_layers(by, form, counted):
    names = [form.format(number) for number in range(12)]
    assert authorship.counted_layers(names) == (set(names) if counted else set()), by


def test_few_layers_that_count_are_their_authors():
    names = ["conv1", "conv2", "conv3", "fc1", "fc2"]
    assert authorship.counted_layers(names) == frozenset()


def test_counts_among_names_that_say_more_are_their_authors():
    names = [f"conv{n}" for n in range(9)] + ["stem", "neck", "head", "mask", "box"]
    assert authorship.counted_layers(names) == frozenset()
    assert authorship.counted_layers(names[:10]) == frozenset(names[:9])


@pytest.mark.parametrize(
    ("path", "owner"),
    [("conv2d_0.w_0", "conv2d_0"), ("a.b.weight", "a.b"), ("t12", ""), ("", "")],
)
def test_the_module_that_a_path_is_of(path, owner):
    assert authorship.owner(path) == owner


@pytest.mark.parametrize(
    ("name", "counts"),
    [("learnable_affine_block_3", True), ("w7", True), ("scale", False), ("", False)],
)
def test_a_word_and_a_number_is_a_count(name, counts):
    assert authorship.is_count(name) is counts


@pytest.mark.parametrize("fused", ["", "/MatMulAddFusion", "/MatMulScaleFusion/"])
def test_what_onnxruntime_adds_to_the_name_of_a_fused_node_is_no_module(fused):
    scope = scope_of_name(f"/layers.0/fc/MatMul{fused}")
    assert [level.name for level in scope] == ["layers", "0", "fc"]
