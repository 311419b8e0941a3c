"""Name attributes and classes after the modules of the file."""

from __future__ import annotations

from collections.abc import Iterable
from keyword import iskeyword

from burnish import nn
from burnish.codegen.arrange.scopes.group_kind import singular
from burnish.codegen.infer.layers.leaves import Doubt
from burnish.codegen.names.identifier import Identifier, free

_RESERVED = frozenset(dir(nn.Module))
_LONGEST = 60
_CLASSES = {"h": "Block", "mlp": "MLP", "model": "Base", "transformer": "Base"}


def usable(name: str) -> bool:
    """Whether a name of the file is a valid attribute name."""
    return (
        name.isidentifier()
        and name.isascii()
        and not iskeyword(name)
        and not _is_reserved(name)
        and len(name) <= _LONGEST
    )


def _is_reserved(name: str) -> bool:
    return not name or name.startswith("__") or name in _RESERVED


def attributes(names: Iterable[str], where: str, doubt: Doubt) -> dict[str, str]:
    """An attribute for each name: the name itself, unless modules have it already."""
    names = list(names)
    taken = {name for name in names if not _is_reserved(name)}
    found: dict[str, str] = {}
    for name in names:
        if name in taken:
            found[name] = name
            continue
        made = free(Identifier(name), taken | _RESERVED)
        taken.add(made)
        found[name] = made
        doubt(where + name, f"every module has an attribute of this name; here {made}")
    return found


def class_of(path: str) -> str:
    """A class by its attribute: "layers.3" is a Layer, "encoder" an Encoder."""
    words = [part for part in path.split(".") if not part.isdigit()]
    if not words:
        return "Block"
    numbered = path.rpartition(".")[2].isdigit()
    word = words[-1]
    if word in _CLASSES:
        return _CLASSES[word]
    bare = singular(word) if numbered else word.rstrip("0123456789_") or word
    made = Identifier.class_name(bare)
    return "Block" if len(made) < 2 else made
