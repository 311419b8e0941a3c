"""Rewrite an Einsum that is a matrix or vector product."""

from __future__ import annotations

import onnx_ir as ir

from burnish.codegen.passes.pattern import Any, Match, Rewritten, Rule, op


def _equation(found: Match) -> tuple[str, str, str] | None:
    node = found.named["main"]
    given = node.attributes["equation"].as_string().replace(" ", "")
    factors, arrow, result = given.partition("->")
    terms = (*factors.split(","), result)
    if not arrow or len(terms) != 3:
        return None
    letters = all(term.isalpha() and len(set(term)) == len(term) for term in terms)
    return (terms[0], terms[1], terms[2]) if letters else None


def _words(left: str, right: str, result: str) -> tuple[bool, str, str] | None:
    """Whether the factors change places, and what each of them is then.

    Each is "as" it is or "transposed": its last two axes swapped.
    """
    for swapped, a, b in ((False, left, right), (True, right, left)):
        summed = [letter for letter in a if letter in b and letter not in result]
        rows, columns = result[:-1], result[-1]
        if len(summed) != 1 or columns in a or result[-2:-1] in b:
            continue
        lead = rows[:-1]
        first = _either(a, lead, rows[-1:], summed[0])
        shared = "" if len(b) == 2 else lead
        second = _either(b, shared, summed[0], columns)
        if first and second and rows and (not swapped or len(a) > 2):
            return swapped, first, second
    return None


def _either(term: str, lead: str, row: str, column: str) -> str:
    ways = {f"{lead}{row}{column}": "as", f"{lead}{column}{row}": "transposed"}
    return ways.get(term, "")


def _product(found: Match) -> Rewritten:
    equation = _equation(found)
    if equation is None:
        return "the equation is not one of two factors with an axis for each letter"
    words = _words(*equation)
    if words is None:
        return "the equation is no matrix product of axes in a row"
    swapped, *ways = words
    nodes, factors = [], []
    names = ("b", "a") if swapped else ("a", "b")
    for name, way in zip(names, ways, strict=True):
        value = found[name]
        if way == "transposed":
            rank = len(equation["ab".index(name)])
            order = [*range(rank - 2), rank - 1, rank - 2]
            turn = ir.node("Transpose", [value], {"perm": order})
            nodes.append(turn)
            value = turn.outputs[0]
        factors.append(value)
    return [*nodes, ir.Node("", "MatMul", factors)]


_EINSUM = op("Einsum", Any("a"), Any("b"), name="main")
RULES = (Rule("MatMul of an equation", _EINSUM, _product),)
