"""Module: a class whose attributes are parameters and other modules.

There is no registration and nothing to call in `__init__`: parameters, buffers and
submodules are found among the attributes, in lists, tuples and dicts too. Names are
attribute paths ("layers.0.fc1.weight"), as in PyTorch. An attribute that holds one
keeps it: see `burnish.nn.core.holding`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

from burnish import serialize
from burnish._engine.arguments import replaced_by
from burnish._engine.misuse import MISUSES
from burnish.autodiff import recording
from burnish.backend import Device
from burnish.errors import InputError, RecordError
from burnish.habits import Count, Fixed, missing
from burnish.nn.adapters.applying import computed, make_plain, reparameterize
from burnish.nn.adapters.reparameterize import Reparameterizer
from burnish.nn.core import notebook, record, tables
from burnish.nn.core.calling import forwarded, sent_through
from burnish.nn.core.display import tree
from burnish.nn.core.groups import ParamGroup
from burnish.nn.core.holding import Holder, named_held, pairs, rebuilt
from burnish.nn.core.param import Buffer, Param, Stored
from burnish.nn.core.paths import each_once, every_path, saved

Path: TypeAlias = str | os.PathLike[str]
_ENDING, _PLANNED = ".safetensors", ".plan.safetensors"
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Forward(Protocol[P, R_co]):
    """A module as type checkers see it: it is called as its `forward` is."""

    device: Device
    on_input: Module | None
    _ahead: Any

    def forward(self, *args: P.args, **options: P.kwargs) -> R_co: ...
    def _explain(self, error: Exception, args: Any, options: Any) -> None: ...


class Module(Holder):
    """Base of every layer and model; `module(x)` calls `forward`."""

    device: Device = Device("cpu")
    _rounds_itself: ClassVar[bool] = False  # whether `forward` calls on_input
    on_input: Module | None = None  #: what the first argument goes through, if anything
    _ahead: Any = None  #: plans that were made ahead of time: see `burnish.planned`

    def forward(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{type(self).__name__} has no forward method")

    def __call__(self: Forward[P, R_co], *args: P.args, **options: P.kwargs) -> R_co:
        try:
            if recording.tape is not None:
                return recording.tape.enter(self, args, options)
            if self._ahead is not None:
                made = self._ahead(self, args, options)
                if made is not NotImplemented:
                    return made
            if Device.is_several:
                with self.device.computing():
                    return forwarded(self, args, options)
            if self.on_input is not None:
                return sent_through(self, args, options)
            return self.forward(*args, **options)
        except MISUSES as error:
            self._explain(error, args, options)
            raise

    def _explain(self, error: Exception, args: Any, options: Any) -> None:
        """Raise an error that says more of what `forward` raised; if there is one."""

    def _in_integers(self, x: Any) -> Any:
        """forward(on_input(x)) as sums of whole numbers have it; None without such."""
        return None

    @property
    def training(self) -> bool:
        """Whether dropout and batch statistics act: on an autodiff device they do."""
        return self.device.is_autodiff

    if not TYPE_CHECKING:
        training = Fixed(
            training, "model.train() for training, model.valid() for inference"
        )

    # --- parameters, buffers and children ---

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Direct submodules with their paths ("conv1", "layers.0")."""
        for path, item in named_held(vars(self)):
            if isinstance(item, Module):
                yield path, item

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module ("") and every one below it, each object once."""
        seen: set[int] = set()

        def walk(module: Module, path: str) -> Iterator[tuple[str, Module]]:
            if id(module) in seen:
                return
            seen.add(id(module))
            yield path, module
            for name, child in module.named_children():
                yield from walk(child, f"{path}.{name}" if path else name)

        yield from walk(self, "")

    def named_tensors(
        self, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Stored]]:
        """Parameters and buffers with their paths.

        remove_duplicate: a shared one comes once, with its first path.
        """
        if not remove_duplicate:
            yield from every_path(self)
            return
        yield from each_once(self)

    def named_parameters(
        self, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Param]]:
        """The tensors that training changes, with their paths.

        remove_duplicate: a shared one comes once, with its first path.
        """
        for path, item in self.named_tensors(remove_duplicate):
            if isinstance(item, Param):
                yield path, item

    @replaced_by("model.parameters(), which has those of all submodules")
    def parameters(self) -> list[Param]:
        """The tensors that training changes."""
        return [param for _, param in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """The tensors that are not trained, with their paths, as PyTorch has them."""
        for path, item in self.named_tensors():
            if isinstance(item, Buffer):
                yield path, item

    @property
    def num_params(self) -> int:
        """The number of values in all parameters, frozen ones too."""
        return Count(sum(param.size for param in self.parameters()))

    @property
    def num_bytes(self) -> int:
        """The bytes that all parameters and buffers take."""
        return sum(item.nbytes for _, item in self.named_tensors())

    def visit(self, visitor: Callable[[str, Stored], None]) -> None:
        """Call `visitor(path, tensor)` for every parameter and buffer."""
        for path, item in self.named_tensors():
            visitor(path, item)

    def map(self, mapper: Callable[[str, Stored], Any]) -> Self:
        """Give every parameter and buffer the value of `mapper(path, tensor)`."""
        for path, item in self.named_tensors():
            item.assign(mapper(path, item))
        return self

    # --- where it is ---

    @replaced_by(
        'model.to("cuda"); model.map(lambda path, tensor: tensor.half()) for a dtype'
    )
    def to(self, device: Device | str) -> Self:
        """Move every tensor to `device`, in place; on ":autodiff" it trains."""
        device = Device(device)
        for _, module in self.named_modules():
            module.device = device
        for _, item in self.named_tensors():
            item.place(device)
        return self

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that parameters and buffers are on, each once."""
        return tuple({item.device: None for _, item in self.named_tensors()})

    def fork(self, device: Device | str) -> Self:
        """A copy on `device`; arrays are shared where the place is the same."""
        copied: Self = _copy(self, {})
        return copied.to(device)

    @replaced_by("model.valid(), a copy for inference")
    def valid(self) -> Self:
        """A copy for inference: same values, no recording, dropout off."""
        return self.fork(self.device.inner())

    @replaced_by(
        "model.train() for training, model.valid() for inference: each is a copy"
    )
    def train(self) -> Self:
        """A copy for training: same values on the autodiff device."""
        return self.fork(self.device.autodiff())

    def freeze(self, group: ParamGroup | None = None) -> Self:
        """Keep every parameter (of `group`) out of training, in place."""
        return self._freeze(group, True)

    def unfreeze(self, group: ParamGroup | None = None) -> Self:
        """Let every parameter (of `group`) take part in training again, in place."""
        return self._freeze(group, False)

    def _freeze(self, group: ParamGroup | None, frozen: bool) -> Self:
        if group is not None and not isinstance(group, ParamGroup):
            raise InputError(
                f"{'freeze' if frozen else 'unfreeze'}: expected a ParamGroup or "
                f"nothing, got {group!r}; write freeze() or unfreeze(), or name "
                "parameters by ParamGroup.from_paths('path')"
            )
        for param in (group or ParamGroup.all()).params(self).values():
            param.freeze(frozen)
        return self

    def no_grad(self) -> Self:
        """Freeze every parameter, in place: the Book's word for `freeze()`."""
        return self.freeze()

    # --- adapters ---

    def apply_lora(
        self,
        rank: int,
        alpha: float | None = None,
        group: ParamGroup | None = None,
        dtype: Any = None,
    ) -> Self:
        """Freeze everything and train low-rank adapters of every matrix, in place.

        group: adapters for these parameters alone, as far as they have two axes or
        more. alpha: the adapters' weight is alpha / rank, 1 by default; dtype: theirs,
        None is the weight's (float32 for halves). `unfreeze(group)` lets others train
        too. Raises InputError for a parameter that has adapters already.
        """
        from burnish.nn.adapters.lora import Lora

        return self._adapted(Lora(rank, alpha, dtype), group)

    def apply_qlora(
        self,
        rank: int,
        alpha: float | None = None,
        group: ParamGroup | None = None,
        dtype: Any = None,
        bits: int = 4,
        block_size: int = 64,
    ) -> Self:
        """`apply_lora` with the weights held as integers of 8, 4 or 2 bits.

        block_size: how many values of a row share a scale. Weights that a Quantizer has
        made small stay so under `apply_lora`, which is the same with any scheme.
        """
        from burnish.nn.adapters.lora import QLora

        return self._adapted(QLora(rank, alpha, dtype, bits, block_size), group)

    def _adapted(self, method: Reparameterizer, group: ParamGroup | None) -> Self:
        self.apply_reparameterization(method, group)
        return self.freeze(ParamGroup.all() - ParamGroup.adapters())

    def apply_reparameterization(
        self, method: Reparameterizer, group: ParamGroup | None = None
    ) -> Self:
        """Let `method` compute every parameter (of `group`) that it fits, in place.

        Raises InputError when it fits none, or when one is computed already.
        """
        reparameterize(self, method, group)
        return self

    def merge_adapters(self) -> Self:
        """Compute every adapted weight once, in place; adapters do not train then."""
        for item in computed(self):
            item.merge()
        return self

    def unmerge_adapters(self) -> Self:
        """Compute adapted weights from their parts again, which are unchanged."""
        for item in computed(self):
            item.unmerge()
        return self

    def remove_adapters(self, merge: bool = True) -> Self:
        """Plain parameters again, in place: with the adapters in them, or as before."""
        make_plain(self, merge)
        return self

    # --- quantization ---

    def quantize_weights(self, quantizer: Any, group: ParamGroup | None = None) -> Self:
        """Quantize weights in place; they do not train then.

        quantizer: a `burnish.quantization.Quantizer`; its `report` says what was lost.
        group: these parameters; None is all with two axes or more.
        """
        quantizer.quantize(self, group)
        return self

    # --- records ---

    def state_dict(self, group: ParamGroup | None = None) -> dict[str, Any]:
        """Every parameter's and buffer's array by its path; nothing is copied.

        A buffer that is not persistent is left out, as in PyTorch.
        group: these parameters alone, and no buffers. A quantized parameter has
        several: "weight.codes", "weight.scales", "weight.scheme".
        """
        held = self.named_tensors() if group is None else group.params(self).items()
        return saved(held)

    def load_state_dict(
        self,
        state: Mapping[str, Any],
        strict: bool = True,
        group: ParamGroup | None = None,
    ) -> Self:
        """Take values by path; each is cast to the dtype the module has.

        strict: names must match exactly (those of `group`, where one is given). Raises
        RecordError for names, shapes and dtypes that do not fit, all of them at once,
        before anything is changed.
        """
        from burnish.nn.lowbit.input_quantizer import (
            inputs_installed,
        )  # a Module itself

        kind = type(self).__name__
        with inputs_installed(self, state):
            every = list(every_path(self))
            if group is not None:
                chosen = {id(param) for param in group.params(self).values()}
                every = [(path, item) for path, item in every if id(item) in chosen]
            values = record.fitted(kind, every, state, strict)
        for item, array in values:
            item.assign(array)
        return self

    def save_file(
        self,
        path: Path,
        dtype: Any = None,
        metadata: Mapping[str, str] | None = None,
        group: ParamGroup | None = None,
    ) -> None:
        """Write every parameter and buffer to a safetensors file, atomically.

        path: with the ending .pt, .pth, .bin or .ckpt a file that torch.load reads, in
        which a shared parameter has all its names; elsewhere it has the first.
        dtype: "float16" or "float64", for the floating-point ones; None keeps theirs.
        group: these parameters alone, and no buffers.
        """
        state = self.state_dict(group)
        if serialize.is_pytorch_name(path):
            state = saved(self.named_tensors(False)) if group is None else state
        elif group is None:
            metadata = {**tables.metadata(self), **(metadata or {})}
        serialize.save_file(record.cast(state, dtype), path, metadata)

    def load_file(
        self, path: Path, strict: bool = True, group: ParamGroup | None = None
    ) -> Self:
        """Take a weights file's values; see `load_state_dict`.

        path: safetensors or PyTorch's own, whole or in shards, or a folder with one.
        Values are mapped, so that those of the module's dtype are not copied. Names
        that differ, other layouts and parts of models: `burnish.store.load`.
        """
        return self._loaded(path, path, strict, group)

    def _loaded(
        self,
        source: Any,
        where: Any,
        strict: bool = True,
        group: ParamGroup | None = None,
    ) -> Self:
        weights = serialize.open_weights(source)
        try:
            self.load_state_dict(weights, strict, group)
        except RecordError as error:
            error.args = (f"{where}: {error}",)
            raise
        tables.restore(self, weights)
        return self

    def to_bytes(self, dtype: Any = None) -> bytes:
        """The module's values as safetensors bytes."""
        state = record.cast(self.state_dict(), dtype)
        return serialize.to_bytes(state, tables.metadata(self))

    @classmethod
    def from_file(cls, path: Path | None = None, **config: Any) -> Self:
        """A module with weights from `path`, or from the file beside its source."""
        if path is None:
            return cls._from_beside(False, config)
        model = cls(**config).load_file(path)
        tables.complete(model)
        return model

    @classmethod
    def _from_beside(cls, checked: bool, config: dict[str, Any]) -> Self:
        """With the weights beside the source; checked: they are as generated."""
        model = cls(**config)
        if not any(t.persistent or t.is_loaded for _, t in model.named_tensors()):
            return model  # there is nothing to read
        path = record.beside(cls)
        if not (checked or config) and _is_planned(path):
            planned = import_module("burnish.planned")  # which imports this module
            if planned.attach(model, path):
                return model
        source: Any = path if isinstance(path, os.PathLike) else path.read_bytes()
        if checked:
            record.refuse_changed(source, f"{path}")
        model._loaded(source, path)
        tables.complete(model)
        return model

    @classmethod
    def from_bytes(cls, data: bytes, **config: Any) -> Self:
        """A module with weights from safetensors bytes."""
        return cls(**config)._loaded(data, f"{cls.__name__}.from_bytes")

    @classmethod
    def from_embedded(cls, **config: Any) -> Self:
        """A module with the weights that its source or its package carries.

        In the source they are `WEIGHTS`, safetensors bytes in base64, else in the file
        beside it, also inside a zip. Raises RecordError where they are not as they were
        generated.
        """
        source = sys.modules.get(cls.__module__)
        if (text := getattr(source, "WEIGHTS", None)) is None:
            return cls._from_beside(True, config)
        import base64

        data = base64.b64decode(text)
        record.refuse_changed(data, f"WEIGHTS of {cls.__module__}")
        return cls.from_bytes(data, **config)

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name):
            if name in dir(type(self)):  # it is there and raised AttributeError
                return object.__getattribute__(self, name)
            kind = type(self).__name__
            raise missing("Module", name, dir(self), kind)

    # --- display ---

    def extra_repr(self) -> str:
        """This module's own part of `repr`, without children: sizes, options."""
        return ""

    def __repr__(self) -> str:
        return tree(self)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: folding boxes, and parameters as bars."""
        return notebook.page(self)


def _is_planned(weights: Any) -> bool:
    """Whether there is a plan file beside a weights file."""
    plain = isinstance(weights, os.PathLike)  # not in an archive
    return plain and os.path.isfile(f"{os.fspath(weights)[: -len(_ENDING)]}{_PLANNED}")


def _copy(value: Any, done: dict[int, Any]) -> Any:
    """A deep copy of modules, tensors and containers; other values are shared."""
    if id(value) in done:
        return done[id(value)]
    made: Any
    if isinstance(value, Stored):
        made = value.copy()
    elif isinstance(value, Module):
        made = done[id(value)] = object.__new__(type(value))
        vars(made).update({k: _copy(v, done) for k, v in vars(value).items()})
    elif isinstance(value, list | tuple | dict):
        made = rebuilt(value, {key: _copy(item, done) for key, item in pairs(value)})
    else:
        return value
    done[id(value)] = made
    return made
