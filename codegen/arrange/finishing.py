"""The last steps: equal classes merged, names, arguments for sizes, runs of parts."""

from __future__ import annotations

from dataclasses import replace

from burnish.codegen.arrange.arguments import with_arguments
from burnish.codegen.arrange.reasons import Reasons
from burnish.codegen.arrange.runs import with_runs
from burnish.codegen.arrange.sizes import sized
from burnish.codegen.errors import Explain, silent
from burnish.codegen.identifier import Identifier, Names
from burnish.codegen.program import Call, ClassPlan, Expression


def finished(
    classes: list[ClassPlan],
    output_names: list[str],
    explain: Explain,
    by_number: bool = False,
    reasons: Reasons | None = None,
) -> list[ClassPlan]:
    """The classes, small to large, merged where only sizes differ, with arguments.

    by_number: see `with_arguments`. reasons: where the classes are from.
    """
    said: list[str] = []
    classes = sized(classes, said.append)
    names = _name(classes)
    if explain is not silent:
        for line in (reasons or Reasons()).lines(classes, names, said):
            explain(line)
    with_arguments(classes, output_names, explain, by_number)
    for plan in classes:
        plan.members = [(name, with_runs(made)) for name, made in plan.members]
    return classes


def _name(classes: list[ClassPlan]) -> dict[str, str]:
    """Names as the source has them: "Block#3" is what its second class is called.

    The result has the names by what they were.
    """
    names: dict[str, str] = {}
    taken = Names()
    for plan in classes[:-1]:
        names[plan.name] = taken.new(Identifier(plan.name.partition("#")[0]))

    def renamed(expression: Expression) -> Expression:
        made = expression.rebuilt(renamed)
        if isinstance(made, Call) and made.function in names:
            return replace(made, function=names[made.function])
        return made

    for plan in classes:
        plan.name = names.get(plan.name, plan.name)
        plan.members = [(attribute, renamed(made)) for attribute, made in plan.members]
    return names
