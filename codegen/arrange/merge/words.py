"""A common name for structurally equal classes that are named after attributes alone.

A file without the names of its author's classes has attributes alone: the modules
`Mixed_5b` and `Mixed_5d`, `branch1x1` and `branch_pool`. Those that do the same, of any
sizes, are of one class, which has the words that all of them begin or end with:
`Mixed`, `Branch`. Blocks of one convolution have a name without any: `ConvReLU`; so do
products that are rounded before their bias is added: `QuantLinear`.
Classes with other names are never merged. Cosmetic: names alone change.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from burnish.codegen.arrange.analysis.holes import filled
from burnish.codegen.arrange.analysis.opening import opened
from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.arrange.scopes.group_kind import conv_word
from burnish.codegen.ops import Trait, functions
from burnish.codegen.program import Call, ClassPlan, Expression, Name, every_expression

_ROUNDING = "nn.FakeQuantize"
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def common_words(classes: Sequence[ClassPlan]) -> dict[str, str]:
    """New names by the old ones, so that classes of one form have one word.

    The last class is the model.
    """
    forms: dict[str, list[ClassPlan]] = defaultdict(list)
    first: dict[str, str] = {}
    for plan in classes[:-1]:
        if plan.words:
            same = forms[_form(plan, first)]
            same.append(plan)
            first[plan.name] = same[0].name
    wanted: dict[str, str] = {}
    for plans in forms.values():
        wanted |= _words(plans)
    numbers = Counter(plan.name.partition("#")[0] for plan in classes)
    names: dict[str, str] = {}
    for name, word in wanted.items():
        numbers[word] += 1
        names[name] = f"{word}#{numbers[word]}"
    return names


def renamed(plan: ClassPlan, names: Mapping[str, str]) -> ClassPlan:
    """The class, and those that it contains, under their new names."""
    members = [(name, _calling(made, names)) for name, made in plan.members]
    return replace(plan, name=names.get(plan.name, plan.name), members=members)


def _form(plan: ClassPlan, first: Mapping[str, str]) -> str:
    """What classes have in common that differ in sizes, and in names of inner ones."""
    members = [(name, _calling(made, first)) for name, made in plan.members]
    whole = replace(plan, members=members)
    return plan.tower + signature(filled(opened(whole, {}, {})[0], lambda _: Name("?")))


def _calling(made: Expression, names: Mapping[str, str]) -> Expression:
    """A constructor that calls classes by other names."""

    def change(part: Expression) -> Expression:
        new = part.rebuilt(change)
        if isinstance(new, Call) and new.function in names:
            return replace(new, function=names[new.function])
        return new

    return change(made)


def _words(plans: Sequence[ClassPlan]) -> dict[str, str]:
    """The word of each class, by its name; not of those that keep their own."""
    every = [word for plan in plans for word in plan.words]
    if len(set(every)) == 1:
        return {}
    shared = _shared(every) or _block(plans[0]) or _rounded(plans[0])
    if shared:
        return {plan.name: shared for plan in plans}
    return max((_ending_alike(plans, end) for end in (0, -1)), key=len)


def _ending_alike(plans: Sequence[ClassPlan], end: int) -> dict[str, str]:
    """The words of those classes whose names have one end in common, 0 or -1."""
    alike: dict[str, list[ClassPlan]] = defaultdict(list)
    for plan in plans:
        alike[_tokens(plan.words[0])[end]].append(plan)
    return {
        plan.name: shared
        for some in alike.values()
        if len(some) > 1 and (shared := _shared(w for p in some for w in p.words))
        for plan in some
    }


def _shared(words: Iterable[str]) -> str:
    """The words that all names begin with, or end with; "" where there are none."""
    split = list(map(_tokens, words))
    begin = _common(split)
    while begin and begin[-1].isdigit():
        begin.pop()
    if begin:
        return "".join(begin)
    end = _common([tokens[::-1] for tokens in split])[::-1]
    while end and not end[0][:1].isupper():
        end.pop(0)
    return "".join(end)


def _tokens(word: str) -> list[str]:
    return _TOKEN.findall(word) or [word]


def _common(split: Sequence[Sequence[str]]) -> list[str]:
    """The longest common prefix."""
    same = takewhile(lambda tokens: len({*tokens}) == 1, zip(*split, strict=False))
    return [tokens[0] for tokens in same]


def _block(plan: ClassPlan) -> str:
    """The word of a convolution with a norm and an activation; "" for other classes."""
    made = [made.function for _, made in plan.members if isinstance(made, Call)]
    if len(made) < len(plan.members) or not made or not made[0].startswith("nn.Conv"):
        return ""
    norms = [name for name in made[1:] if name.startswith("nn.BatchNorm")]
    called = [e.function for e in every_expression(plan.block) if isinstance(e, Call)]
    if len(made) > 1 + len(norms) or len(norms) > 1 or len(called) > 1:
        return ""
    if not set(called) <= functions(Trait.ACTIVATION):
        return ""
    kind = made[0].removeprefix("nn.")
    return conv_word(kind, bool(norms), next(iter(called), None))


def _rounded(plan: ClassPlan) -> str:
    """The word of a layer whose products are rounded; "" for other classes."""
    made = [made.function for _, made in plan.members if isinstance(made, Call)]
    layers = [name for name in made if name not in (_ROUNDING, "nn.Param")]
    if len(made) < len(plan.members) or _ROUNDING not in made or len(layers) != 1:
        return ""
    called = [e for e in every_expression(plan.block) if isinstance(e, Call)]
    own = not layers[0].startswith("nn.")
    return "" if called or own else f"Quant{layers[0].removeprefix('nn.')}"
