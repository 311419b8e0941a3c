"""Shape transfer functions take any operands: a model may be one that nothing runs."""

from hypothesis import given
from hypothesis import strategies as st

from burnish.codegen.arrange.hyperparams import transfer_rules
from burnish.codegen.arrange.hyperparams.size_classes import Ties
from burnish.codegen.program import Literal, Method, Value
from burnish.codegen.symbolic import transfer

numbers = st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=5)
shapes = st.one_of(st.none(), numbers)
axes = st.one_of(st.integers(-6, 6), st.lists(st.integers(-6, 6), max_size=4))


def made(ties, shape):
    return None if shape is None else [ties.new(number) for number in shape]


@given(st.lists(shapes, min_size=4, max_size=4), st.integers(-6, 6))
def test_operands_whose_shapes_may_not_be_known(operands, number):
    ties = Ties({})
    a, b, c, d = several = [made(ties, shape) for shape in operands]
    transfer_rules.broadcast(ties, several)
    transfer_rules.split(ties, a, number, [b, c])
    transfer_rules.conv(ties, number, a, b, c)
    transfer_rules.attention(ties, a, b, c, d)
    transfer_rules.rotary(ties, a, [b, c], number)


@given(st.lists(numbers, min_size=3, max_size=3), st.integers(-6, 6))
def test_several_operands_of_any_ranks(operands, axis):
    ties = Ties({})
    x, y, z = (made(ties, shape) for shape in operands)
    transfer.split(x, axis, y, ties)
    transfer.matmul(x, y, ties)
    transfer.conv(x, y, 2, z, ties)
    transfer.attention(x, y, z, ties)
    transfer.index(x, [y, z], ties)
    found = transfer.concat([x, y], axis, ties)
    assert found is None or len(found) == len(x)


def test_parts_of_one_size_are_one():
    ties = Ties({})
    one, other, wide = ties.new(3), ties.new(3), ties.new(4)
    whole = ties.total([one, other])
    assert ties.of(whole) == 6
    assert ties.find(one) == ties.find(other)
    assert [(p.whole, p.times) for p in ties.products] == [(whole, 2)]
    assert ties.of(ties.total([one, wide])) == 7
    assert ties.of(ties.total([one, ties.new()])) is None
    assert len(ties.products) == 1


def test_channels_of_a_convolution_are_one_size():
    ties = Ties({})
    taken, channels, half = ties.new(8), ties.new(8), ties.new(4)
    x = [ties.new(), taken, ties.new()]
    transfer.conv(x, [ties.new(), channels, ties.new()], 1, [ties.new()], ties)
    assert ties.find(taken) == ties.find(channels)
    transfer.conv(x, [ties.new(), half, ties.new()], 2, [ties.new()], ties)
    (product,) = ties.products
    assert ties.find(product.whole) == ties.find(taken)
    assert (product.factors, product.times) == ((half,), 2)


@given(numbers, numbers, axes)
def test_axes_and_sizes_of_any_rank(before, after, places):
    ties = Ties({})
    start, end = made(ties, before), made(ties, after)
    transfer_rules.reshaped(ties, start, end)
    given_axes = tuple(places) if isinstance(places, list) else places
    call = Method(Value("x"), "sum", (Literal(given_axes),))
    transfer_rules.reduced(call, start, end)
