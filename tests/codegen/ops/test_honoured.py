"""What a rule does not honour is refused, with the node's name."""

import onnx
import pytest

from burnish.codegen import pipeline
from burnish.codegen.errors import AttributeNotHonouredError


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
