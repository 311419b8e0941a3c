"""Join plans: modules of other graphs become attributes of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.arrange.merge.words import renamed
from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.program import Call, ClassPlan, Plan, under


def joined(plan: Plan, parts: Mapping[str, Plan]) -> Plan:
    """The plan, whose model has the model of each part as an attribute.

    Classes of parts that are equal are one; others of one name say which part's.
    """
    *inner, model = plan.classes
    names = Names(each.name for each in plan.classes)
    known: dict[str, str] = {}
    classes: list[ClassPlan] = []
    for attribute, part in parts.items():
        own = Identifier.class_name(attribute)
        new: dict[str, str] = {}
        for each in part.classes:
            is_top = each is part.classes[-1]
            made = renamed(each, new)
            form = signature(made)
            if form in known and not is_top:
                new[each.name] = known[form]
                continue
            wanted = own if is_top else Identifier(each.name)
            if wanted in names.taken and not is_top:
                wanted = Identifier(f"{own}{each.name}")
            new[each.name] = names.new(wanted)
            known[form] = new[each.name]
            classes.append(replace(made, name=new[each.name], is_part=is_top))
        model.members.append((attribute, Call(new[part.classes[-1].name])))
    weights = (w for name, part in parts.items() for w in under(name, part.weights))
    tables = (w for name, part in parts.items() for w in under(name, part.tables))
    return Plan(
        [*classes, *inner, model],
        [*plan.weights, *weights],
        [*plan.tables, *tables],
    )
