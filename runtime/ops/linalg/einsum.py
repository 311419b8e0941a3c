"""Einstein summation; its gradient is another Einstein summation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from burnish.autodiff import Variable
from burnish.backend import Array, namespace
from burnish.errors import InputError
from burnish.operator import composed, operator
from burnish.ops._shapes import total, unbroadcast

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@composed
def einsum(equation: str, *arrays: Any) -> Array:
    """Products summed over labels, as `numpy.einsum`: ellipses, diagonals, "ij,jk".

    An equation without "->" keeps the labels that occur once, in alphabetical order.
    """
    if not isinstance(equation, str):
        raise InputError(
            f"einsum: expected an equation such as 'ij,jk->ik' before the arrays, "
            f"got {type(equation).__name__}"
        )
    return einsum_of(*arrays, equation=equation)


@operator
def einsum_of(*arrays, equation: str) -> Array:
    """`einsum` of arrays that come before its equation."""
    try:
        if len(arrays) == 1:
            return _alone(arrays[0], equation)
        xp = namespace(*arrays)
        order = _order(equation, *map(np.shape, arrays)) if xp is np else True
        return xp.einsum(equation, *arrays, optimize=order)
    except ValueError as error:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise InputError(f"einsum {equation!r}: got {shapes}: {error}") from None


@functools.lru_cache(1 << 8)
def _order(equation: str, *shapes: tuple[int, ...]) -> Any:
    """The order in which NumPy contracts operands of these shapes, found once."""
    operands = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    return np.einsum_path(equation, *operands, optimize=True)[0]


def _alone(x: Array, equation: str) -> Array:
    """One operand: a view of its labels, without repetitions, summed and transposed."""
    xp, ((term,), result) = namespace(x), explicit(equation, [x.ndim])
    own = "".join(dict.fromkeys(term))
    if len(set(result)) < len(result) or not set(result) <= set(own):
        return xp.einsum(equation, x)  # raises with the reason
    gone = tuple(i for i, label in enumerate(own) if label not in result)
    y = xp.einsum(f"{term}->{own}", x)
    y = total(y, gone).squeeze(gone) if gone else y
    left = [label for label in own if label in result]
    return y.transpose([left.index(label) for label in result])


@einsum_of.vjp
def _(g, y, *arrays, equation):
    terms, result = explicit(equation, [len(a.shape) for a in arrays])
    return [_gradient(g, arrays, terms, result, i) for i in range(len(arrays))]


def _gradient(
    g: Any, arrays: tuple[Any, ...], terms: list[str], result: str, i: int
) -> Any:
    """The gradient of operand i: the result's labels and the others' give its own.

    A label found nowhere else is brought in by ones, the second place of a repeated
    label (a diagonal) by an identity matrix.
    """
    sizes: dict[str, int] = {}
    for a, term in zip(arrays, terms, strict=True):
        for label, n in zip(term, a.shape, strict=True):
            sizes[label] = max(n, sizes.get(label, 0)) if n else 0
    operands = [g, *arrays[:i], *arrays[i + 1 :]]
    labels = [result, *terms[:i], *terms[i + 1 :]]
    xp = g.device.xp if isinstance(g, Variable) else namespace(*arrays)
    dtype = g.dtype
    fresh = iter(sorted(set(_LETTERS) - set("".join(terms))))
    target = ""
    for label in terms[i]:
        if label in target:
            other = next(fresh)
            operands.append(xp.eye(sizes[label], dtype=dtype))
            labels.append(label + other)
            label = other
        elif not any(label in term for term in labels):
            operands.append(xp.ones(sizes[label], dtype))
            labels.append(label)
        target += label
    part = einsum(f"{','.join(labels)}->{target}", *operands)
    return unbroadcast(part, arrays[i])


def explicit(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The operands' labels and the result's, ellipses spelled out by unused letters."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    longest = max(
        rank - len(term) + 3 if "..." in term else 0
        for term, rank in zip(terms, ranks, strict=True)
    )
    spare = "".join(sorted(set(_LETTERS) - set(equation), reverse=True))
    rest = spare[:longest]
    named = left.replace("...", "").replace(",", "")
    if not arrow:
        once = sorted(label for label in set(named) if named.count(label) == 1)
        result = ("..." if "..." in left else "") + "".join(once)
    spelled = [
        term.replace("...", rest[longest - (rank - len(term) + 3) :])
        for term, rank in zip(terms, ranks, strict=True)
    ]
    return spelled, result.replace("...", rest)
