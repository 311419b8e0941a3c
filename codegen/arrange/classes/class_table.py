"""The classes built so far, by their structural hash: equal bodies are one class."""

from __future__ import annotations

from collections import Counter

from burnish.codegen.arrange.analysis.schedule import as_needed
from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.program import ClassPlan, Expression, callee, contained


class ClassTable:
    """Interns classes; those of a trial that was given up are in no model."""

    def __init__(self) -> None:
        self.classes: dict[str, ClassPlan] = {}
        self.wanted: Counter[str] = Counter()

    def known(self, plan: ClassPlan) -> str:
        """The name of the class with this body; a new one where there is none.

        Statements in another order are the same body.
        """
        key = signature(as_needed(plan))
        if key not in self.classes:
            self.wanted[plan.name] += 1
            plan.name = f"{plan.name}#{self.wanted[plan.name]}"
            self.classes[key] = plan
        return self.classes[key].name

    def plan(self, made: Expression | None) -> ClassPlan | None:
        """The class that a constructor calls; None for one of the library."""
        plans = self.classes.values()
        return next((p for p in plans if p.name == callee(made)), None)

    def used_by(self, model: ClassPlan) -> list[ClassPlan]:
        """The classes that the model contains, in the order of their building."""
        return contained(model, {plan.name: plan for plan in self.classes.values()})
