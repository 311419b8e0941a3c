"""The whole pipeline, from a model file to source and weights.

read -> passes -> lift -> arrange -> render -> write
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import onnx_ir as ir

from burnish.codegen import architectures, passes, tensorflow
from burnish.codegen.account import Account, Accounts
from burnish.codegen.arrange import arrange, joined
from burnish.codegen.errors import Explain, UsageError, about, silent, spelled
from burnish.codegen.infer import infer as infer_modules
from burnish.codegen.lift import lift
from burnish.codegen.names.identifier import plain
from burnish.codegen.ops import has_rule
from burnish.codegen.output.generated import Existing, Generated, Options
from burnish.codegen.output.header import header
from burnish.codegen.output.ownership import SEAL, Settled, keeping, mark, settle
from burnish.codegen.output.stored import stored
from burnish.codegen.passes.quantized import quantized_layers
from burnish.codegen.program import Plan, Program
from burnish.codegen.readers import Source, parts_of, read, valid_or_refused
from burnish.codegen.readers.expand import expand
from burnish.codegen.readers.sizes.shapes import infer
from burnish.codegen.render import Header, render
from burnish.codegen.render.layout import wrapped
from burnish.codegen.signature import LINES
from burnish.codegen.weights.entries import Progress, entries, write_files
from burnish.nn.core import tables
from burnish.serialize import is_weights

__all__ = ["Generated", "Options", "generate", "put", "settle", "write"]

_ROUNDS = 20
"""How often passes follow new shapes: two may know one size by different words."""

_STAGES = ("reading", "simplifying", "translating", "arranging", "writing source")


def generate(
    path: str | Path,
    options: Options | None = None,
    *,
    template_dir: Path | None = None,
    progress: Progress | None = None,
    explain: Explain | None = None,
) -> Generated:
    """Source and weights of a model file; nothing is written.

    progress: called with (stage, done, total). explain: called with one line for each
    decision. Raises ConversionError when the model cannot be read or converted.
    """
    options, explain, path = options or Options(), explain or silent, Path(path)
    with about(path):
        if architectures.is_model_folder(path):
            if reason := architectures.unknown(path):
                note = f"{reason}; so this is what the weights alone tell"
                return _from_weights(path, options, template_dir, explain, note)
            return _from_folder(path, options, template_dir, explain)
        if _holds_weights(path):
            return _from_weights(path, options, template_dir, explain)
        with valid_or_refused(path):
            return _from_graph(path, options, template_dir, progress or _deaf, explain)


def _from_graph(
    path: Path,
    options: Options,
    template_dir: Path | None,
    report: Progress,
    explain: Explain,
) -> Generated:
    """A model whose file has the graph."""

    def stage(number: int) -> None:
        report(_STAGES[number], number, len(_STAGES))

    stage(0)
    source = read(path, explain=explain)
    program, plan = planned(source, options, explain, stage)
    stage(4)
    held = plan.tables if options.weights else ()
    metadata = tables.packed({path: table.read() for path, table in held})
    kept = stored(path, options, plan.weights, metadata, of_graph=True)
    top = header(source, program, options, kept.where)
    page = partial(render, plan, top, kept.embedded(), template_dir)
    text = page()
    if options.selftest:
        from burnish.codegen.output.golden import golden

        weights = kept.weights or entries(plan.weights, options.half)
        text = page(golden(source.model, text, weights, metadata))
    return kept.generated(
        text,
        (*source.notes, *_to_fill_in(program)),
        source.files,
        partial(_text, template_dir),
        unknown=program.unknown,
    )


def _to_fill_in(program: Program) -> Iterator[str]:
    for kind, nodes in program.unknown.items():
        word = "node" if len(nodes) == 1 else "nodes"
        yield (
            f"{kind} is unknown ({word} {', '.join(map(repr, nodes))}): fill in its "
            "method, it says nn.Unwritten"
        )


def planned(
    source: Source,
    options: Options,
    explain: Explain = silent,
    stage: Callable[[int], None] = lambda _: None,
) -> tuple[Program, Plan]:
    """Lower and arrange a model: one list of statements, and classes."""
    program, plan = _planned(source.model, options, explain, stage)
    parts = {
        name: _planned(part, options, explain)[1]
        for name, part in parts_of(source.model).items()
    }
    return program, joined(plan, parts) if parts else plan


def _planned(
    model: ir.Model,
    options: Options,
    explain: Explain,
    stage: Callable[[int], None] = lambda _: None,
) -> tuple[Program, Plan]:
    tensorflow.rewrite_operators(model)
    _quantized(model, options, explain)
    expand(model, has_rule, explain)
    tensorflow.write_scopes(model)
    stage(1)
    _simplify(model, explain, options.simplify)
    stage(2)
    program = lift(model, options.allow_unknown)
    stage(3)
    return program, arrange(program, options.flat, explain)


def _from_folder(
    folder: Path, options: Options, template_dir: Path | None, explain: Explain
) -> Generated:
    """A model that a configuration describes, by its architecture's template."""
    _refuse(options, folder, "flat", "selftest", "allow_unknown", "dequantize")
    made = architectures.build(
        folder, template_dir=template_dir, typed=options.typed, explain=explain
    )
    kept = stored(folder, options, made.weights)
    text = made.text(kept.where, kept.embedded())
    return kept.generated(text, made.notes, made.files, partial(_text, template_dir))


def _refuse(options: Options, path: Path, *words: str) -> None:
    """Options that a model without a graph cannot have."""
    for word in words:
        if getattr(options, word):
            raise UsageError(
                f"{spelled(word)}: expected a model file with a graph, got {path}"
            )


def _holds_weights(path: Path) -> bool:
    """Whether a path is a weights file, or a folder with one."""
    return path.exists() and is_weights(path)


def _from_weights(
    path: Path,
    options: Options,
    template_dir: Path | None,
    explain: Explain,
    *notes: str,
) -> Generated:
    """A model from weights alone, inferred from their names and shapes."""
    _refuse(options, path, "flat", "selftest", "allow_unknown", "dequantize")
    made = infer_modules(path, explain)
    kept = stored(path, options, made.plan.weights)
    lines = (
        f"Imported from {plain(made.files[0].name)} ({made.kind}), sha256",
        f"{made.sha256};",
        *wrapped(f"{kept.where}."),
        *LINES,
        *(("", *made.header_notes) if made.header_notes else ()),
    )
    title = "What weights alone tell of a model"
    top = Header(title, lines, (), {}, options.typed)
    return kept.generated(
        render(made.plan, top, kept.embedded(), template_dir),
        (*notes, *made.notes),
        made.files,
        partial(_text, template_dir),
        origin=made.files[0],
        as_stored=made.whole and not options.quantize,
    )


def _text(template_dir: Path | None, path: Path, options: Options) -> str:
    """The source of another model, from the same templates."""
    return generate(path, options, template_dir=template_dir).text


def _quantized(model: ir.Model, options: Options, explain: Explain) -> None:
    """Layers that round; one file for NumPy alone has their operators instead."""
    if not options.dequantize and (options.standalone or not options.simplify):
        return
    account = Account()
    if quantized_layers(model, account, dequantize=options.dequantize):
        infer(model, silent)
    for line in account.lines({}):
        explain(line)


def _simplify(model: ir.Model, explain: Explain, simplify: bool) -> None:
    """Passes, until the shapes that they make known lead to no other change."""
    accounts = Accounts(passes.places(model), near=explain is not silent)
    changed = passes.run(model, accounts, simplify=simplify)
    for _ in range(_ROUNDS):
        if not (simplify and changed and infer(model, silent)):
            break
        changed = passes.run(model, accounts)
    accounts.explain_all(explain, passes.places(model))


def write(
    generated: Generated,
    out_dir: str | Path,
    *,
    existing: Existing = "keep",
    progress: Progress | None = None,
) -> list[Path]:
    """Write the source, and the weights beside it; both appear whole or not at all.

    existing: how to treat files that are not ours; see `settle`. Weights that come
    from the very file that would be written stay as they are there. Raises
    OwnershipError, or UsageError where an output would replace an input.
    """
    files, _ = put(settle(generated, Path(out_dir), existing), progress=progress)
    return files


def put(
    settled: Settled, *, progress: Progress | None = None
) -> tuple[list[Path], list[Path]]:
    """Write the outputs; returns the files written, and backups of replaced ones."""
    made = settled.generated
    with keeping(settled.kept) as kept:
        files = write_files(
            settled.folder,
            made.name,
            settled.text,
            made.weights if settled.weights else (),
            progress or _deaf,
            {**made.metadata, **mark(made.name, made.text)} if settled.weights else {},
            SEAL,
        )
    return files, kept


def _deaf(stage: str, done: int, total: int) -> None:
    """A Progress that draws nothing."""
