"""Propagate tied weights into classes that tie them too: all paths are set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burnish.codegen.program import (
    Attribute,
    Call,
    ClassPlan,
    Expression,
    Literal,
    SelfAttr,
    Subscript,
    held,
)

Step = str | int


def extend_ties(plans: Sequence[ClassPlan]) -> None:
    """Add the ties that follow, in place; plans: small to large.

    `self.b.fc1.bias = self.a.bias` leaves `self.b.fc2.bias` at the old parameter, if
    the class of `b` ties it to `fc1.bias`.
    """
    classes = {plan.name: plan for plan in plans}
    for plan in plans:
        plan.shared = [
            (reached(path), other)
            for one, other in plan.shared
            for path in (path_of(one), *_also(path_of(one), plan, classes))
        ]


def _also(
    path: Sequence[Step], plan: ClassPlan, classes: dict[str, ClassPlan]
) -> Iterator[list[Step]]:
    """The other paths of a weight, from the classes that are passed on the way."""
    owner, made = plan, None
    for i, step in enumerate(path):
        if isinstance(made, Call) and made.function in classes:
            owner, made = classes[made.function], None
            for one, other in owner.shared:
                if path_of(other) == path[i:]:
                    yield [*path[:i], *path_of(one)]
        made = held(made, [step]) if made else _member(owner, step)


def _member(owner: ClassPlan, step: Step) -> Expression | None:
    members = dict(owner.members)
    if isinstance(step, int) and "" in members:
        return held(members[""], [step], owner.base)
    return members.get(str(step))


def reached(path: Sequence[Step]) -> Expression:
    """`self.layers[0].weight` of ["layers", 0, "weight"]."""
    first, *rest = path
    made: Expression = SelfAttr((first,) if isinstance(first, str) else ("", first))
    for step in rest:
        if isinstance(step, int):
            made = Subscript(made, (Literal(step),))
        else:
            made = Attribute(made, step)
    return made


def path_of(expression: Expression) -> list[Step]:
    """The inverse of `reached`."""
    match expression:
        case Attribute(target=target, name=name):
            return [*path_of(target), name]
        case Subscript(target=target, keys=(Literal(value=int() as place),)):
            return [*path_of(target), place]
        case SelfAttr(path=path):
            return [step for step in path if step != ""]
    return []
