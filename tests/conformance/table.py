"""Print the support table to docs/operators.md: python -m tests.conformance.table"""

from __future__ import annotations

import multiprocessing
import sys
from collections import defaultdict
from pathlib import Path

import onnx

from burnish.codegen.ops import registry
from burnish.codegen.readers.microsoft import FAMILIES, bodies
from tests.codegen.readers.test_microsoft import CASES, SPARSE
from tests.conformance.runner import exclusions, failure
from tests.conformance.searches import SEARCHES
from tests.harness.onnx_cases import cases

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
HEAD = """\
# Operators

Printed by `python -m tests.conformance.table` from ONNX's own node cases ({version}),
each of them generated, imported and run: {passed} of {total} pass.

A rule says what the operator becomes in generated source. An operator without one is
expanded to the definition that the specification gives; where that has none either,
"not yet", it is refused by name. Cases are those that have the operator in their graph
under its own name.

| operator | from opset | how | cases passed |
| --- | --- | --- | --- |
"""

ONNXRUNTIME = """
## onnxruntime's own

Files that onnxruntime's optimisers wrote have operators of the domain `com.microsoft`.
Those in the row "legacy" are in ONNX's own domain: ONNX withdrew them, or changed what
they say.
These are read as what they mean in ONNX's operators. Each is compared with onnxruntime
in `tests/codegen/readers/test_microsoft.py`. Those in italics have no kernel of its for
a CPU, or one that wants past and present in one buffer: they are compared with NumPy in
`test_microsoft_formulas.py`. A file with another one is refused, and the message names
it: generate from the file as it was before the optimisation.
Operators of `com.microsoft.nchwc`, which `ORT_ENABLE_ALL` lays out for one kind of
processor, are put in order again. Where nothing in the file tells whether its blocks
have 8 or 16 channels it is refused: save it with `ORT_ENABLE_EXTENDED`.

GreedySearch, BeamSearch and Sampling, which
`onnxruntime.transformers.convert_generation` writes for GPT-2 and for encoders with
decoders such as T5, hold their decoder as a graph in an attribute. It becomes a module,
with its blocks as in a file of its own, and the search a call of `burnish.generation`,
whose tokens are those of onnxruntime one by one:
`generation.greedy_search(self.decoder, input_ids, max_length.item(), ...)`. A
presence_mask is subtracted token by token, as on CUDA: onnxruntime's kernel for CPUs
takes all of it from the first score. Weights that an encoder and a decoder share are
there twice: they train apart. `burnish export --onto` writes tuned weights back into
the file, and refuses those of one tensor that differ; `burnish.codegen.writers.export`
writes operators, so the decoder alone (`model.decoder`). `burnish verify` and
`--selftest` make prompts within the vocabulary, and lengths and beams that go together.
A decoder that writes keys and values in place, as for CUDA, and the searches of Whisper
are refused.

| family | operators |
| --- | --- |
"""


def main() -> int:
    """Run every case and write the page; 1 when the exclusions are not up to date."""
    names = list(cases())
    with multiprocessing.Pool() as pool:
        failed = {
            name
            for name, reason in zip(
                names, pool.map(failure, names, chunksize=16), strict=True
            )
            if reason is not None
        }
    PAGE.write_text(page(names, failed))
    print(f"{len(names) - len(failed)} of {len(names)} cases pass: {PAGE.name}")
    return int(failed != set(exclusions()))


def page(names: list[str], failed: set[str]) -> str:
    """The page's text."""
    used: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in names:
        for kind in {(n.domain, n.op_type) for n in cases()[name].model.graph.node}:
            used[kind].append(name)
    rows = []
    for schema in sorted(onnx.defs.get_all_schemas(), key=lambda s: (s.domain, s.name)):
        if schema.domain not in DOMAINS:
            continue
        kind = (schema.domain, schema.name)
        own = [name for name in used[kind] if "expanded" not in name]
        count = sum(name not in failed for name in own)
        shown = schema.name if not schema.domain else f"{schema.domain}.{schema.name}"
        since = min((rule.since for rule in registry.get(kind, ())), default="")
        rows.append(f"| {shown} | {since} | {_how(schema)} | {count} of {len(own)} |")
    total, passed = len(names), len(names) - len(failed)
    version = f"onnx {onnx.__version__}"
    head = HEAD.format(version=version, passed=passed, total=total)
    return head + "\n".join(rows) + "\n" + onnxruntime()


def onnxruntime() -> str:
    """The paragraph on onnxruntime's own operators."""
    compared = {model.graph.name for model, _ in (*CASES, *SPARSE)}
    rows = []
    for family in FAMILIES:
        name = family.__name__.rpartition(".")[2]
        held = sorted(k for k, b in bodies.items() if b.__module__ == family.__name__)
        shown = [kind if kind in compared else f"*{kind}*" for kind in held]
        rows.append(f"| {name} | {', '.join(shown)} |\n")
    searches = sorted(name.partition(".")[2] for name in SEARCHES)
    rows.append(f"| searches | {', '.join(searches)} |\n")
    return ONNXRUNTIME + "".join(rows)


def _how(schema: onnx.defs.OpSchema) -> str:
    if (schema.domain, schema.name) in registry:
        return "rule"
    defined = schema.has_function or schema.has_context_dependent_function
    return "definition" if defined else "not yet"


if __name__ == "__main__":
    sys.exit(main())
