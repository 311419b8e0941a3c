"""ParamGroup: a selection of a module's parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from burnish.errors import InputError

if TYPE_CHECKING:
    from burnish.nn.core.module import Module
    from burnish.nn.core.param import Param

Named = list[tuple[str, "Param"]]
"""Every path of every parameter; one that is shared has several."""


class ParamGroup:
    """A set of parameters, given by path, so that it fits every copy of a module.

        head = ParamGroup.from_paths("fc", "classifier.bias")
        model.freeze(ParamGroup.all() - head)

    `a | b` (or `a.fuse(b)`) has the parameters of either, `a - b` (or
    `a.exclude(b)`) those of a alone. A group says nothing about values: its members are
    looked up when it is used.
    """

    def __init__(self, choose: Callable[[Named], set[int]], name: str):
        self._choose = choose  # the ids of the parameters that are in it
        self._name = name

    @classmethod
    def all(cls) -> ParamGroup:
        """Every parameter."""
        return cls(lambda named: {id(param) for _, param in named}, "all()")

    @classmethod
    def from_paths(cls, *paths: str) -> ParamGroup:
        """Parameters by path; a module's path means all that is in it.

        Using the group raises InputError for a path that the module does not have.
        """

        def choose(named: Named) -> set[int]:
            found: set[int] = set()
            for path in paths:
                inside = {id(param) for name, param in named if _is_in(name, path)}
                if not inside:
                    raise InputError(_nothing(path, named))
                found |= inside
            return found

        return cls(choose, f"from_paths({', '.join(map(repr, paths))})")

    @classmethod
    def from_params(cls, module: Module, *params: Param) -> ParamGroup:
        """These parameters of `module`, and the same ones in its copies."""
        paths = {id(param): path for path, param in module.named_parameters()}
        if any(id(param) not in paths for param in params):
            raise InputError(
                f"ParamGroup.from_params: expected parameters of "
                f"{type(module).__name__}, got one that it does not have"
            )
        return cls.from_paths(*(paths[id(param)] for param in params))

    @classmethod
    def from_predicate(cls, *predicates: Callable[[str, Param], bool]) -> ParamGroup:
        """Parameters for which one of the predicates `(path, parameter)` is true."""

        def choose(named: Named) -> set[int]:
            return {
                id(param)
                for path, param in named
                if any(predicate(path, param) for predicate in predicates)
            }

        return cls(choose, "from_predicate(...)")

    @classmethod
    def from_regex(cls, *patterns: str) -> ParamGroup:
        """Parameters in whose path one of the regular expressions is found."""
        compiled = [re.compile(pattern) for pattern in patterns]
        made = cls.from_predicate(
            lambda path, _: any(pattern.search(path) for pattern in compiled)
        )
        made._name = f"from_regex({', '.join(map(repr, patterns))})"
        return made

    @classmethod
    def adapters(cls) -> ParamGroup:
        """The parameters that `apply_lora` and its like have added."""
        made = cls.from_predicate(lambda _, param: param.is_adapter)
        made._name = "adapters()"
        return made

    def fuse(self, other: ParamGroup) -> ParamGroup:
        """The parameters in this group or in `other`."""
        return ParamGroup(
            lambda named: self._choose(named) | other._choose(named),
            f"{self._name} | {other._name}",
        )

    def exclude(self, other: ParamGroup) -> ParamGroup:
        """The parameters in this group but not in `other`."""
        return ParamGroup(
            lambda named: self._choose(named) - other._choose(named),
            f"{self._name} - ({other._name})",
        )

    __or__ = fuse
    __sub__ = exclude

    def params(self, module: Module) -> dict[str, Param]:
        """The group's parameters in `module` by path, in the module's order."""
        chosen = self._choose(list(module.named_parameters(remove_duplicate=False)))
        return {path: p for path, p in module.named_parameters() if id(p) in chosen}

    def paths(self, module: Module) -> list[str]:
        """The paths of the group's parameters in `module`."""
        return list(self.params(module))

    def __repr__(self) -> str:
        return f"<ParamGroup {self._name}>"


def _is_in(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}.")


def _nothing(path: str, named: Named) -> str:
    import difflib

    names = {name for name, _ in named}
    places = {name.rpartition(".")[0] for name in names} | names
    meant = difflib.get_close_matches(path, places, 1, 0.6)
    hint = f"; is {meant[0]!r} meant?" if meant else ""
    return f"ParamGroup.from_paths: there is no parameter at or in {path!r}{hint}"
