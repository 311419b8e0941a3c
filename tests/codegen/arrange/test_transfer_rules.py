"""Shape transfer functions take any operands: a model may be one that nothing runs."""

from hypothesis import given
from hypothesis import strategies as st

from burnish.codegen.arrange.hyperparams import transfer_rules
from burnish.codegen.arrange.hyperparams.size_classes import Ties
from burnish.codegen.program import Literal, Method, Value

numbers = st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=5)
shapes = st.one_of(st.none(), numbers)
axes = st.one_of(st.integers(-6, 6), st.lists(st.integers(-6, 6), max_size=4))


def made(ties, shape):
    return None if shape is None else [ties.new(number) for number in shape]


@given(st.lists(shapes, min_size=1, max_size=4), shapes)
def test_several_operands_of_any_ranks(operands, own):
    ties = Ties({})
    parts = [made(ties, shape) for shape in operands]
    transfer_rules.split(ties, made(ties, own), parts)
    transfer_rules.broadcast(ties, parts)
    transfer_rules.conv(ties, *[*parts, None][:3])
    found = transfer_rules.concat(ties, parts, made(ties, own))
    assert found is None or len(found) == len(own)


@given(numbers, numbers, axes)
def test_axes_and_sizes_of_any_rank(before, after, places):
    ties = Ties({})
    start, end = made(ties, before), made(ties, after)
    transfer_rules.reshaped(ties, start, end)
    given_axes = tuple(places) if isinstance(places, list) else places
    found = transfer_rules.unsqueezed(ties, start, given_axes)
    count = len(places) if isinstance(places, list) else 1
    assert found is None or len(found) == len(before) + count
    call = Method(Value("x"), "sum", (Literal(given_axes),))
    transfer_rules.reduced(call, start, end)
