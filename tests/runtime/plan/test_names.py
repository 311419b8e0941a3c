"""Rules and kernels name operators, arguments and options that there are."""

from burnish import ops
from burnish.capture.gradients import _IN_PARTS, _UNREAD
from burnish.operator import registry
from burnish.plan.cpu import LOWERED
from burnish.plan.graph import STEPS
from burnish.plan.rewrites.programs import _OPERATORS

JOINED = {"linear", "program", "attention", "lstm of rounded states", "to_float16"}
EFFECTS = {"put", "update", "assign", "draw"}  # of caches, parameters, the source

READ = {
    "batch_norm": "x running_mean running_var weight bias eps",
    "channel_norm": "x scale bias eps",
    "clip": "x min max",
    "conv": "x weight bias stride padding dilation groups",
    "conv_input_gradient": "g weight sizes padding stride dilation groups",
    "conv_weight_gradient": "x g kernel padding stride dilation groups",
    "gated": "g x above below slope",
    "hard_sigmoid": "x alpha beta",
    "hard_tanh": "x low high",
    "layer_norm_from": "x weight bias axis eps",
    "leaky_relu": "x negative_slope",
    "linear": "x weight bias",
    "matmul": "a b",
    "max_pool": "x kernel_size stride padding dilation ceil_mode",
    "pad_constant": "x pads value",
    "reduce_mean": "x axes keepdims",
    "rms_norm_from": "x weight axis eps",
    "softmax": "x axis",
    "swish": "x alpha",
    "transpose": "x axes",
    "where": "condition a b",
    "window_sum": "x kernel_size stride padding dilation ceil_mode",
}


def test_operators_are_there():
    for name in ops.__all__:  # families are imported when they are asked for
        getattr(ops, name)
    lowered = {
        name.removesuffix(" gradient")
        for name in LOWERED.keys() - JOINED - EFFECTS - set(STEPS.values())
    }
    assert lowered | _OPERATORS.keys() | READ.keys() <= registry.keys()
    assert {*_IN_PARTS, *_UNREAD} <= registry.keys()


def test_arguments_and_options_are_those_that_rules_read():
    for name, words in READ.items():
        known = registry[name]
        assert [*known.arguments, *known.defaults] == words.split(), name
