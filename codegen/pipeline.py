"""The whole pipeline, from a model file to source and weights.

read -> passes -> lift -> arrange -> render -> write
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import onnx_ir as ir

from burnish.codegen import architectures, passes, tensorflow
from burnish.codegen.account import Account, Accounts
from burnish.codegen.arrange import arrange
from burnish.codegen.errors import (
    Explain,
    UsageError,
    about,
    already,
    noting,
    others,
    silent,
    spelled,
)
from burnish.codegen.generated import Existing, Generated, Options, usual_name
from burnish.codegen.identifier import Identifier, plain
from burnish.codegen.infer import infer as infer_modules
from burnish.codegen.lift import lift
from burnish.codegen.ops import has_rule
from burnish.codegen.ownership import SEAL, Settled, keeping, mark, settle
from burnish.codegen.passes.quantized import quantized_layers
from burnish.codegen.program import Plan, Program, Value
from burnish.codegen.readers import Source, read, valid_or_refused
from burnish.codegen.readers.expand import expand
from burnish.codegen.readers.shapes import infer
from burnish.codegen.render import Header, render
from burnish.codegen.render.layout import wrapped
from burnish.codegen.render.names import input_names
from burnish.codegen.signature import LINES, signed
from burnish.codegen.weights.dequantized import small
from burnish.codegen.weights.entries import (
    Entry,
    Progress,
    as_text,
    entries,
    write_files,
)
from burnish.codegen.weights.quantized import quantized
from burnish.nn import tables
from burnish.serialize import is_weights

__all__ = ["Generated", "ModelGen", "Options", "generate", "put", "settle", "write"]

EMBED_AS_TEXT = 8 * 1024 * 1024
"""Embedded weights up to this many bytes stand in the source, larger ones beside it."""

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
    tell: Progress,
    explain: Explain,
) -> Generated:
    """A model whose file has the graph."""

    def stage(number: int) -> None:
        tell(_STAGES[number], number, len(_STAGES))

    stage(0)
    source = read(path, explain=explain)
    program, plan = planned(source, options, explain, stage)
    stage(4)
    name = _module_name(options, path)
    every = entries(plan.weights, options.half)
    weights = _written(every, options)
    if not options.dequantize:
        weights = small(weights)
    held = plan.tables if options.weights else ()
    metadata = tables.packed({path: table.read() for path, table in held})
    in_source = _fits_source(weights, options)
    where = _where(name, bool(weights or metadata), in_source)
    header = _header(source, program, options, where)
    embedded = as_text(weights, metadata, SEAL) if in_source else None
    page = partial(render, plan, header, embedded, template_dir)
    text = page()
    if options.selftest:
        from burnish.codegen.golden import golden

        text = page(
            golden(
                source.model,
                text,
                weights or entries(plan.weights, options.half),
                metadata,
            )
        )
    text = _settled(text, options, weights, metadata)
    return Generated(
        name,
        text,
        weights,
        in_source,
        _count(every),
        (*source.notes, *_to_fill_in(program)),
        source.files,
        partial(_text, template_dir),
        metadata,
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
    """What a model that was read computes, in one list of statements and as classes."""
    tensorflow.in_onnx_words(source.model)
    _quantized(source.model, options, explain)
    expand(source.model, has_rule, explain)
    tensorflow.write_scopes(source.model)
    stage(1)
    _simplify(source, explain, options.simplify)
    stage(2)
    program = lift(source.model, options.allow_unknown)
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
    name = _module_name(options, folder)
    every = entries(made.weights, options.half)
    weights = _written(every, options)
    in_source = _fits_source(weights, options)
    where = _where(name, bool(weights), in_source) + _spelled(options)
    embedded = as_text(weights, {}, SEAL) if in_source else None
    text = _settled(made.text(where, embedded), options, weights)
    return Generated(
        name,
        text,
        weights,
        in_source,
        _count(every),
        made.notes,
        made.files,
        partial(_text, template_dir),
    )


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
    name = _module_name(options, path)
    every = entries(made.plan.weights, options.half)
    weights = _written(every, options)
    in_source = _fits_source(weights, options)
    lines = (
        f"Imported from {plain(made.files[0].name)} ({made.kind}), sha256",
        f"{made.sha256};",
        *wrapped(f"{_where(name, bool(weights), in_source)}{_spelled(options)}."),
        *LINES,
        *(("", *made.said) if made.said else ()),
    )
    title = "What weights alone tell of a model"
    header = Header(title, lines, (), {}, options.typed)
    embedded = as_text(weights, {}, SEAL) if in_source else None
    text = render(made.plan, header, embedded, template_dir)
    text = _settled(text, options, weights)
    return Generated(
        name,
        text,
        weights,
        in_source,
        _count(every),
        (*notes, *made.notes),
        made.files,
        partial(_text, template_dir),
        origin=made.files[0],
        as_stored=made.whole and not options.quantize,
    )


def _text(template_dir: Path | None, path: Path, options: Options) -> str:
    """The source of another model, from the same templates."""
    return generate(path, options, template_dir=template_dir).text


def _settled(
    text: str,
    options: Options,
    weights: tuple[Entry, ...],
    metadata: Mapping[str, str] | None = None,
) -> str:
    """A source as it is written: with its digest, and the runtime where asked for."""
    if options.standalone:
        from burnish.codegen.standalone import refuse_dtypes, standalone

        refuse_dtypes((entry.path, entry.dtype) for entry in weights)
        text = standalone(text, quantized=bool(options.quantize), tables=bool(metadata))
    return signed(text)


def _written(every: tuple[Entry, ...], options: Options) -> tuple[Entry, ...]:
    """What of a model's weights is stored, and how."""
    return quantized(every, options.quantize) if options.weights else ()


def _fits_source(weights: tuple[Entry, ...], options: Options) -> bool:
    size = sum(entry.size for entry in weights)
    return options.embed and size <= EMBED_AS_TEXT


def _where(name: str, has_file: bool, in_source: bool) -> str:
    if in_source:
        return "weights at the end"
    return f"weights in {name}.safetensors" if has_file else "no weights"


def _spelled(options: Options) -> str:
    return f"; options: {options.spelled()}" if options.spelled() else ""


def _count(weights: tuple[Entry, ...]) -> int:
    return sum(weight.count for weight in weights if weight.trained)


def _quantized(model: ir.Model, options: Options, explain: Explain) -> None:
    """Layers that round; one file for NumPy alone has their operators instead."""
    if not options.dequantize and (options.standalone or not options.simplify):
        return
    account = Account()
    if quantized_layers(model, account, dequantize=options.dequantize):
        infer(model, silent)
    for line in account.lines({}):
        explain(line)


def _simplify(source: Source, explain: Explain, simplify: bool) -> None:
    """Passes, until the shapes that they make known lead to no other change."""
    model = source.model
    accounts = Accounts(passes.places(model), near=explain is not silent)
    changed = passes.run(model, accounts, simplify=simplify)
    for _ in range(_ROUNDS):
        if not (simplify and changed and infer(model, silent)):
            break
        changed = passes.run(model, accounts)
    accounts.tell(explain, passes.places(model))


def write(
    generated: Generated,
    out_dir: str | Path,
    *,
    existing: Existing = "keep",
    progress: Progress | None = None,
) -> list[Path]:
    """Write the source, and the weights beside it; both appear whole or not at all.

    existing: what happens to files that are somebody's; see `settle`. Weights that come
    from the very file that would be written stay as they are there. Raises
    OwnershipError, or UsageError where an output would replace an input.
    """
    files, _ = put(settle(generated, Path(out_dir), existing), progress=progress)
    return files


def put(
    settled: Settled, *, progress: Progress | None = None
) -> tuple[list[Path], list[Path]]:
    """Write what was settled; the files written, and those kept under other names."""
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


def refuse_one_name_twice(made: Sequence[Generated]) -> None:
    """Raise UsageError for models of one name, whose files would replace each other."""
    names = [generated.name for generated in made]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(
            f"expected models of different names, got {', '.join(sorted(twice))} "
            f"more than once; generate them one by one with {spelled('name')}"
        )


def _deaf(stage: str, done: int, total: int) -> None:
    """A Progress that draws nothing."""


class ModelGen:
    """Generates model code from a build script.

    ModelGen(out_dir="my_app/models", embed_states=True).input("resnet18.onnx").run()

    existing: what happens to a file there that somebody changed or that Burnish did not
    write. "keep": it stays, and nothing is written; "force": it is kept as .bak;
    "merge": changes to the source go into the new one.
    """

    def __init__(
        self,
        out_dir: str | Path,
        *,
        embed_states: bool = False,
        half_precision: bool = False,
        simplify: bool = True,
        flat: bool = False,
        typed: bool = False,
        weights: bool = True,
        quantize: Literal["q8", "q4"] | None = None,
        standalone: bool = False,
        selftest: bool = False,
        allow_unknown: bool = False,
        dequantize: bool = False,
        name: str | None = None,
        template_dir: str | Path | None = None,
        existing: Existing = "keep",
    ):
        self.existing = existing
        self.out_dir = Path(out_dir)
        self.template_dir = Path(template_dir) if template_dir else None
        self.options = Options(
            name,
            half_precision,
            embed_states,
            simplify,
            flat,
            typed,
            weights,
            quantize,
            standalone,
            selftest,
            allow_unknown,
            dequantize,
        )
        self.inputs: list[Path] = []

    def input(self, path: str | Path) -> Self:
        """Add a model file."""
        self.inputs.append(Path(path))
        return self

    def run(self) -> list[Path]:
        """Generate every model, then write them all; the files written.

        Raises ConversionError when one cannot be converted, or would replace a file
        that stays; nothing is written then. A model's files appear together or not at
        all; an error while they are written notes those of the models before it.
        """
        with noting(lambda: others(len(self.inputs))):
            made = [
                generate(path, self.options, template_dir=self.template_dir)
                for path in self.inputs
            ]
            refuse_one_name_twice(made)
            settled = [settle(each, self.out_dir, self.existing) for each in made]
        written: list[Path] = []
        with noting(lambda: already(written)):
            for each in settled:
                written += put(each)[0]
        return written


def _module_name(options: Options, path: Path) -> str:
    if (wanted := options.name) is None:
        return usual_name(path)
    name = Identifier.module(wanted)
    if name != wanted:
        raise UsageError(
            f"{spelled('name')}: expected a module name such as {name} (no "
            f"word or module of Python's, none that the source imports), got {wanted!r}"
        )
    return name


# --- the page's header ---


def _header(source: Source, program: Program, options: Options, where: str) -> Header:
    lines = [
        f"Imported from {plain(source.path.name)} (opset {source.opset}), sha256",
        f"{source.sha256};",
        *wrapped(f"{where}{_spelled(options)}."),
        *LINES,
    ]
    return Header(
        _title(program),
        tuple(lines),
        _accepts(program),
        _optional(program),
        options.typed,
    )


def _title(program: Program) -> str:
    """`images -> logits`"""
    before = ", ".join(Identifier.variable(value.hint) for value in program.inputs)
    after = ", ".join(plain(name) for name in program.output_names)
    title = f"{before} -> {after}"
    if len(title) > 80:
        counts = (len(program.inputs), "input"), (len(program.output_names), "output")
        title = " -> ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in counts)
    return title


def _accepts(program: Program) -> tuple[tuple[str, str], ...]:
    names = input_names(program.inputs)
    return tuple(
        (names[value], _spec(value)) for value in program.inputs if value.dtype
    )


def _spec(value: Value) -> str:
    """`float32[batch, 28, 28]`"""
    if value.shape is None:
        return f"{value.dtype}[...]"
    sizes = [
        str(d) if isinstance(d, int) else d if d and d.isidentifier() else "_"
        for d in value.shape
    ]
    return f"{value.dtype}[{', '.join(sizes)}]"


def _optional(program: Program) -> dict[str, Any]:
    names = input_names(program.inputs)
    return {names[value]: default for value, default in program.optional.items()}
