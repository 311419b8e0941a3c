"""Rules refuse attributes they do not honour; others show in the numbers."""

import numpy as np
import onnx
import pytest

from burnish import Tensor
from burnish.codegen import pipeline
from burnish.codegen.errors import AttributeNotHonouredError, UnsupportedError
from tests.codegen.ops.test_control import model


def test_an_unknown_auto_pad_is_refused(tmp_path):
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 1, 4, 4] x, float[1, 1, 3, 3] w) => (float[1, 1, 4, 4] y) {
            y = Conv<auto_pad = "SAME">(x, w) }"""
    )
    proto.graph.node[0].name = "conv1"
    onnx.save(proto, tmp_path / "made.onnx")
    with pytest.raises(
        AttributeNotHonouredError, match=r"'conv1' \(Conv\).*SAME_UPPER"
    ):
        pipeline.generate(tmp_path / "made.onnx")


def test_an_unknown_word_is_refused(tmp_path):
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 1, 4, 4] x, float[2, 4] rois, int64[2] which)
          => (float[2, 1, 1, 1] y) { y = RoiAlign<mode = "median">(x, rois, which) }"""
    with pytest.raises(AttributeNotHonouredError, match="one of avg, max, got median"):
        model(text, tmp_path)


def test_a_pool_of_more_axes_than_its_input_is_refused(tmp_path):
    """As PyTorch's exporter writes a pool of an input without a batch."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 4, 4] x) => (float[1, 4, 4] y) {
            y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x) }"""
    with pytest.raises(UnsupportedError, match=r"4 axes for kernel_shape .* got 3"):
        model(text, tmp_path)


SCAN = """
<ir_version: 3, opset_import: ["" : 8]>
sums (float[1, 2] start, float[1, 3, 2] x, int64[1] lengths)
  => (float[1, 2] y, float[1, 3, 2] sums) {
  y, sums = Scan <num_scan_inputs = 1, directions = [1], body = b (float[2] h,
    float[2] item) => (float[2] next, float[2] seen) {
      next = Add (h, item)
      seen = Identity (next)
    }> (LENGTHS, start, x)
}
"""


def test_an_old_scan_runs_over_its_batch(tmp_path):
    net, _ = model(SCAN.replace("LENGTHS", ""), tmp_path)
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    start = Tensor(np.ones((1, 2), np.float32))
    y, sums = net(start, Tensor(x), Tensor(np.array([3])))
    assert y.tolist() == [[7, 10]]
    assert sums.tolist() == (1 + np.cumsum(x[:, ::-1], axis=1)).tolist()


def test_an_old_scan_ends_at_the_length_that_is_given(tmp_path):
    net, _ = model(SCAN.replace("LENGTHS", "lengths"), tmp_path)
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    start = Tensor(np.ones((1, 2), np.float32))
    for length, total in ((2, [3, 5]), (0, [1, 1])):
        y, sums = net(start, Tensor(x), Tensor(np.array([length])))
        assert y.tolist() == [total]
        assert sums[0, length:].tolist() == [[0, 0]] * (3 - length)


RESHAPE = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 3] x, int64[N] shape) => (float[a, b, c] y) {
  y = Reshape OPTIONS (x, shape)
}
"""


def test_a_zero_keeps_the_size_where_the_running_model_says_so(tmp_path):
    net, _ = model(RESHAPE.replace("OPTIONS", ""), tmp_path)
    x = Tensor(np.ones((2, 3), np.float32))
    assert net(x, Tensor(np.array([0, 1, -1]))).shape == (2, 1, 3)


def test_a_zero_is_a_zero_where_the_file_says_so(tmp_path):
    net, _ = model(RESHAPE.replace("OPTIONS", "<allowzero = 1>"), tmp_path)
    x = Tensor(np.ones((0, 3), np.float32))
    assert net(x, Tensor(np.array([3, 0, 1]))).shape == (3, 0, 1)


PAD = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2, 3] x, int64[P] pads, int64[A] axes) => (float[a, b] y) {
  y = Pad (x, pads, , axes)
}
"""


def test_padding_along_any_number_of_axes(tmp_path):
    net, _ = model(PAD, tmp_path)
    x, pads = Tensor(np.ones((2, 3), np.float32)), Tensor(np.array([1, 2]))
    assert net(x, pads, Tensor(np.array([-1]))).tolist() == [[0, 1, 1, 1, 0, 0]] * 2
