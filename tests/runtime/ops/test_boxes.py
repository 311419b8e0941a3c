"""Boxes against ONNX's reference, and the gradients of what images show in them."""

import math

import numpy as np
import onnx
import pytest

from burnish import ops
from burnish.errors import InputError
from tests.harness.operators import case
from tests.harness.reference import judged

RANDOM = np.random.default_rng(0)
ROIS = np.array([[0.3, 0.4, 3.1, 2.7], [-0.8, 1.2, 1.3, 4.9], [2.1, 0.2, 2.3, 0.5]])
WHICH = np.array([0, 1, 1])


def reference(op_type, *inputs, **attributes):
    node = onnx.helper.make_node(op_type, list("abcde"[: len(inputs)]), ["y"])
    for name, value in attributes.items():
        node.attribute.append(onnx.helper.make_attribute(name, value))
    feeds = dict(zip(node.input, inputs, strict=True))
    types = [
        onnx.helper.make_tensor_value_info(
            k, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape
        )
        for k, v in feeds.items()
    ]
    y = onnx.helper.make_empty_tensor_value_info("y")
    graph = onnx.helper.make_graph([node], "g", types, [y])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 21)]
    )
    return judged(model, feeds)[0]


CASES = [
    case(ops.roi_align, (2, 2, 4, 5), ROIS, WHICH, output_size=(2, 3), low=0.1),
    case(
        ops.roi_align,
        (2, 1, 4, 4),
        ROIS,
        WHICH,
        output_size=(2, 1),
        sampling_ratio=2,
        spatial_scale=0.9,
        aligned=False,
    ),
    case(
        ops.roi_align,
        (2, 1, 4, 4),
        ROIS,
        WHICH,
        output_size=(2, 2),
        mode="max",
        grad=(0,),
    ),
    case(
        ops.non_max_suppression,
        np.array([[[0, 0, 2, 2], [0, 0, 2, 1.8], [5, 5, 4, 4], [0, 0, 2, 0.8]]]),
        np.array([[[0.5, 0.9, 0.1, 0.6]]]),
        max_output_boxes_per_class=3,
        iou_threshold=0.5,
        grad=False,
        expect=lambda boxes, scores: np.array([[0, 0, 1], [0, 0, 3], [0, 0, 2]]),
    ),
    case(
        ops.max_roi_pool,
        (2, 2, 5, 6),
        np.array([[0, 0, 0, 5, 4], [1, 1.2, 1.4, 3.7, 3.2], [1, 5, 4, 9, 8]]),
        output_size=(2, 3),
        grad=(0,),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(case):
    case.check()


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_regions_are_those_of_the_reference(mode, aligned, ratio):
    x = RANDOM.random((2, 3, 6, 7), np.float32)
    rois = RANDOM.uniform(-2, 12, (9, 4)).astype(np.float32)
    which = RANDOM.integers(0, 2, 9)
    options = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": 0.6}
    got = ops.roi_align(x, rois, which, output_size=(3, 2), aligned=aligned, **options)
    kind = "half_pixel" if aligned else "output_half_pixel"
    want = reference(
        "RoiAlign",
        *(x, rois, which),
        output_height=3,
        output_width=2,
        coordinate_transformation_mode=kind,
        **options,
    )
    np.testing.assert_allclose(got, want, 1e-4, 1e-5)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("limit", [0, 3, 50])
@pytest.mark.parametrize("threshold", [0.0, 0.4, 1.0])
def test_the_same_boxes_are_chosen(center, limit, threshold):
    boxes = RANDOM.random((2, 40, 4), np.float32)
    scores = RANDOM.random((2, 3, 40), np.float32).round(1)
    got = ops.non_max_suppression(
        boxes,
        scores,
        max_output_boxes_per_class=limit,
        iou_threshold=threshold,
        score_threshold=0.3,
        center_point_box=center,
    )
    limits = (np.array([limit]), np.float32([threshold]), np.float32([0.3]))
    want = reference(
        "NonMaxSuppression", boxes, scores, *limits, center_point_box=int(center)
    )
    assert got.dtype == np.int64
    assert {tuple(row) for row in got.tolist()} == {tuple(r) for r in want.tolist()}


def test_the_greatest_of_each_part():
    x = RANDOM.normal(size=(1, 1, 7, 9))
    (got,) = ops.max_roi_pool(x, np.array([[0.0, 2, 1, 7, 6]]), output_size=(2, 4))
    for (row, col), value in np.ndenumerate(got[0]):
        rows = slice(1 + math.floor(row * 3), 1 + math.ceil((row + 1) * 3))
        cols = slice(2 + math.floor(col * 1.5), 2 + math.ceil((col + 1) * 1.5))
        assert value == x[0, 0, rows, cols].max()


def test_an_unknown_mode_is_refused():
    with pytest.raises(InputError, match="'avg' or 'max'"):
        ops.roi_align(np.ones((1, 1, 2, 2)), ROIS, WHICH, mode="min")
