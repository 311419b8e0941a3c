"""Program to Plan by phases; one tuple gives their order and says why.

A phase is a function of the program and of the facts that phases share. It changes both
in place. The phases before `build_classes` give statements their scopes; those behind
it change classes. All but the needed ones are cosmetic: without one of them the numbers
are the same, and equal those of the flat form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from burnish.codegen.arrange.classes.buffer_init import is_loaded
from burnish.codegen.arrange.classes.builder import Builder
from burnish.codegen.arrange.classes.explain import Reasons
from burnish.codegen.arrange.classes.stacking import stacked
from burnish.codegen.arrange.hyperparams.choose import with_arguments
from burnish.codegen.arrange.merge.comprehensions import with_runs
from burnish.codegen.arrange.merge.merge import sized
from burnish.codegen.arrange.merge.words import common_words, renamed
from burnish.codegen.arrange.recover.beside import structure_beside
from burnish.codegen.arrange.recover.structure import structure
from burnish.codegen.arrange.rerolling.jump_threading import threaded
from burnish.codegen.arrange.scopes.biases import place_by_biases
from burnish.codegen.arrange.scopes.group_kind import module_scope
from burnish.codegen.arrange.scopes.grouping import every_weight, holds_weights, leaves
from burnish.codegen.arrange.scopes.hoisting import hoist
from burnish.codegen.arrange.scopes.missing_modules import with_uncalled
from burnish.codegen.arrange.scopes.repeated_calls import distinguish_calls
from burnish.codegen.errors import Explain, silent
from burnish.codegen.names.authorship import (
    SAYS_NOTHING,
    counted_layers,
    is_count,
    is_paddles_value,
    owner,
)
from burnish.codegen.names.identifier import Identifier, Names
from burnish.codegen.program import (
    Block,
    ClassPlan,
    Flow,
    Layer,
    Plan,
    Program,
    Statement,
    Weight,
    pruned,
)

_FEW = 8
"""One layer in so many that has a scope is no structure: tools leave single names."""


@dataclass
class Facts:
    """State that phases share besides the program.

    flat: one class, whatever structure there is. by_number: features of one number are
    the same size, where data flow does not say. names: names of attributes that
    the recovered structure gives, by the layer's or weight's id. reasons: what
    `--explain` says of scopes. classes: small to large, the model last; weights: their
    paths. merged: lines of the merging phase, until the classes have their names.
    """

    explain: Explain = silent
    flat: bool = False
    by_number: bool = False
    names: dict[int, str] = field(default_factory=dict)
    reasons: Reasons = field(default_factory=Reasons)
    classes: list[ClassPlan] = field(default_factory=list)
    weights: list[tuple[str, Weight]] = field(default_factory=list)
    merge_lines: list[str] = field(default_factory=list)


Phase = Callable[[Program, Facts], None]


def arrange(program: Program, flat: bool = False, explain: Explain = silent) -> Plan:
    """The program as classes, small to large, and the path of every weight.

    flat: one class, whatever structure there is.
    """
    facts = Facts(explain, flat)
    run(PHASES, program, facts)
    kept = [(path, weight) for path, weight in facts.weights if weight.persistent]
    tables = [(path, weight) for path, weight in facts.weights if is_loaded(weight)]
    return Plan(facts.classes, kept, tables)


def finished(classes: list[ClassPlan], explain: Explain) -> list[ClassPlan]:
    """Run the last phases on classes inferred from weights alone, without a program."""
    facts = Facts(explain, by_number=True, classes=classes)
    nothing = Program([], {}, Block([], []), [], [])
    run(PHASES[PHASES.index(merge_classes) :], nothing, facts)
    return facts.classes


def run(phases: Iterable[Phase], program: Program, facts: Facts) -> None:
    """Run phases in the order given."""
    for phase in phases:
        phase(program, facts)


# --- the program's statements get scopes ---


def stack_tensors(program: Program, facts: Facts) -> None:
    """Write a join of tensors along a new axis as one stack; drop dead statements."""
    program.body = pruned(stacked(program.body))


def thread_branches(program: Program, facts: Facts) -> None:
    """Move an If whose condition an earlier one decides into the earlier's branches."""
    program.body = threaded(program.body)


def forget_counted_layers(program: Program, facts: Facts) -> None:
    """Forget the names of layers that a framework counted: "conv2d_0.w_0"."""
    bare = [s for s in program.body.statements if not s.scope]
    held = [e for s in bare for e in leaves(s) if isinstance(e, Layer)]
    paths = [w.path for layer in held for w in layer.weights.values()]
    paths = [path for path in paths if not is_paddles_value(path)]
    counted = counted_layers(map(owner, paths))
    for weight in (w for s in bare for w in every_weight(s) if counted):
        path = weight.path
        known = owner(path) in counted or is_count(owner(path))
        if known or is_paddles_value(path):
            weight.path = SAYS_NOTHING
            if weight.source is not None:
                weight.source.named = False
    if counted:
        facts.explain(f"names: those of {len(counted)} layers only count")


def read_scopes(program: Program, facts: Facts) -> None:
    """Reduce scopes to the parts that can be modules; no scopes for `--flat`."""
    for statement in program.body.statements:
        scope = () if facts.flat else module_scope(statement)
        statement.scope = tuple(
            replace(level, name=level.name or "_") for level in scope
        )
    if facts.flat:
        facts.explain("scopes: ignored, one flat class was requested")
    else:
        place_by_biases(program.body.statements, Flow(program.body))


def recover_structure(program: Program, facts: Facts) -> None:
    """Recover scopes of what has none, from repeated subgraphs."""
    if facts.flat:
        return
    if not _is_nameless(program.body.statements, facts.explain):
        facts.names = structure_beside(program, facts.explain)
        return
    for statement in program.body.statements:
        statement.scope = ()
    facts.names = structure(program, facts.explain)


def number_calls(program: Program, facts: Facts) -> None:
    """Number the calls of a module that is called several times."""
    if not facts.flat:
        distinguish_calls(program.body.statements)


def add_uncalled_modules(program: Program, facts: Facts) -> None:
    """Put into scopes the modules that only the weights' names have."""
    if not facts.flat:
        with_uncalled(program.body.statements)


def hoist_shared(program: Program, facts: Facts) -> None:
    """Hoist non-trainable statements that several modules read out of the first one."""
    hoist(program.body.statements, program.body.results)


# --- scopes become classes ---


def build_classes(program: Program, facts: Facts) -> None:
    """Make classes of scopes: one for equal bodies."""
    builder = Builder(program, facts.names, facts.reasons, facts.flat)
    facts.classes, facts.weights = builder.build()


def share_words(program: Program, facts: Facts) -> None:
    """Give classes of one form one name, where only attributes have named them."""
    names = common_words(facts.classes)
    facts.classes = [renamed(plan, names) for plan in facts.classes]
    facts.reasons.rename(names)


def merge_classes(program: Program, facts: Facts) -> None:
    """Merge classes that differ in sizes only, or in some parts."""
    facts.classes = sized(facts.classes, facts.merge_lines.append)


def name_classes(program: Program, facts: Facts) -> None:
    """Name classes as the source does; explain decisions by those names."""
    names = _names(facts.classes)
    facts.classes = [renamed(plan, names) for plan in facts.classes]
    if facts.explain is not silent:
        for line in facts.reasons.lines(facts.classes, names, facts.merge_lines):
            facts.explain(line)


def name_sizes(program: Program, facts: Facts) -> None:
    """Make constructor arguments of the sizes that tie the model together."""
    with_arguments(facts.classes, program.output_names, facts.explain, facts.by_number)


def write_comprehensions(program: Program, facts: Facts) -> None:
    """Write equal constructors in a row as a comprehension."""
    for plan in facts.classes:
        plan.members = [(name, with_runs(made)) for name, made in plan.members]


PHASES: tuple[Phase, ...] = (
    thread_branches,  # before branches that are alike become modules
    forget_counted_layers,  # before their names are taken for a module tree
    stack_tensors,  # while a join's operands are beside it, in one list of statements
    read_scopes,  # the author's module tree, as far as the file has it
    recover_structure,  # where the file has none, or not for all layers
    number_calls,  # before modules are added: one of the two calls may lack them
    add_uncalled_modules,  # the tree is whole from here on
    hoist_shared,  # a shared mask would make the first of equal modules unlike the rest
    build_classes,  # equal bodies are one class
    share_words,  # only classes of one name are merged
    merge_classes,  # classes that differ in sizes are one with arguments
    name_classes,  # when it is known how many of a kind are left
    name_sizes,  # what merging made arguments of counts as a use of a size
    write_comprehensions,  # last: the others find each constructor written out
)
#: Phases that cannot be left out: source needs classes, and names without "#2".
NEEDED: tuple[Phase, ...] = (read_scopes, build_classes, name_classes)


def _is_nameless(statements: Sequence[Statement], explain: Explain) -> bool:
    """Whether hardly any of the layers has a scope."""
    layers = [s for s in statements if holds_weights(s)]
    counted, what = (layers, "layers") if layers else (statements, "statements")
    named = sum(bool(s.scope) for s in counted)
    nameless = named * _FEW <= len(counted)
    explain(
        f"scopes: {named} of {len(counted)} {what} say which module they are of"
        + ("; what the graph repeats is looked for" if nameless else "")
    )
    return nameless


def _names(classes: list[ClassPlan]) -> dict[str, str]:
    """Names as the source has them: "Block#3" is what its second class is called.

    The result has the names by what they were.
    """
    names: dict[str, str] = {}
    taken = Names()
    for plan in classes[:-1]:
        names[plan.name] = taken.new(Identifier(plan.name.partition("#")[0]))
    return names
