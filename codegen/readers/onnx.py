"""Read an ONNX file to the normalized Graph; weights stay in the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from burnish._files.budget import Budget
from burnish.codegen.errors import ConversionError, Explain, ReadError
from burnish.codegen.readers import microsoft, opset, proto
from burnish.codegen.readers.checks import counts
from burnish.codegen.readers.detect import open_file
from burnish.codegen.readers.external import attach
from burnish.codegen.readers.microsoft.shared import searches
from burnish.codegen.readers.normal import normalize, round_lengths
from burnish.codegen.readers.sizes import shapes
from burnish.codegen.readers.sizes.carried import forget_changing
from burnish.codegen.readers.sizes.input_axes import rename_input_axes
from burnish.codegen.readers.tensors import MappedFile
from burnish.codegen.readers.wire import Table, TooManyError, fields, slim
from burnish.codegen.weights import constants
from burnish.errors import BudgetError

_TRAINING_INFO = 20


def load(file: MappedFile, explain: Explain) -> tuple[ir.Model, int]:
    """The model in `file` in normal form, and the opset that the file declares."""

    def build(
        message: Any, tables: dict[int, Table], declared: int, budget: Budget
    ) -> ir.Model:
        model = normalize(message, explain, tables, budget)
        model = microsoft.to_own_domain(model)
        model = opset.bring_up(model, declared, explain)
        round_lengths(model)
        return model

    def finish(model: ir.Model) -> None:
        for part in searches.detach(model):
            finish(part)
        microsoft.expand(model, explain)  # it reads weights of few bits
        rename_input_axes(model, explain)
        forget_changing(model, explain)
        shapes.infer(model, explain)
        shapes.refuse_conflicts(model)

    return _guarded(file, explain, build, finish)


def load_for_upgrade(path: Path, target: int, explain: Explain) -> tuple[ir.Model, int]:
    """The model at opset `target` and the opset it had; unchanged if that is enough."""

    def build(
        message: Any, tables: dict[int, Table], declared: int, _budget: Budget
    ) -> ir.Model:
        model = normalize(message, explain, tables)
        return model if declared >= target else opset.convert(model, declared, target)

    return _guarded(open_file(path), explain, build)


def _guarded(
    file: MappedFile,
    explain: Explain,
    build: Callable[[Any, dict[int, Table], int, Budget], ir.Model],
    finish: Callable[[ir.Model], None] = lambda _: None,
) -> tuple[ir.Model, int]:
    """Build the model of the file, its tensors attached; errors name the file.

    finish: called with the model once its tensors are attached.
    """
    budget = Budget(file.size, str(file.path))
    try:
        message, tables = parse(file, explain)
        counts.check(message)
        declared = proto.clean(message, explain, budget)
        model = build(message, tables, declared, budget)
        attach(model, file, budget)
        finish(model)
    except BudgetError:
        raise
    except ConversionError as error:
        raise type(error)(f"{file.path}: {error}") from error
    except RecursionError:
        raise ReadError(
            f"{file.path}: expected graphs and functions that are nested a few levels "
            "deep, got hundreds; export it again"
        ) from None
    except Exception as error:  # a damaged file may break anything: one clean error
        raise ReadError(
            f"{file.path}: expected a valid ONNX model, reading it failed with "
            f"{type(error).__name__} ({error}); export it again"
        ) from error
    model.meta[constants.BUDGET] = budget
    return model, declared


def parse(file: MappedFile, explain: Explain) -> tuple[Any, dict[int, Table]]:
    """The file's ModelProto with large tensors left where they are; long lists."""
    try:
        data, tables = slim(file.data)
        message = onnx.ModelProto.FromString(data)
    except TooManyError as error:
        raise ReadError(str(error)) from None
    except Exception as error:  # WireError, and protobuf's own in all its builds
        raise ReadError(
            f"expected an ONNX model, got damaged bytes ({error}); "
            "download or export it again"
        ) from None
    if any(field[0] == _TRAINING_INFO for field in fields(file.data, 0, file.size)):
        explain("training_info is ignored: burnish trains with its own Learner")
    return message, tables
