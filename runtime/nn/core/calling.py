"""A module's call: `on_input` quantizes the input where it is set, then `forward`."""

from __future__ import annotations

from typing import Any


def forwarded(module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of `module(*args, **options)`."""
    if module.on_input is not None:
        return sent_through(module, args, options)
    return module.forward(*args, **options)


def sent_through(module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`forward`, its first argument sent through the module's `on_input`."""
    if module._rounds_itself:
        return module.forward(*args, **options)
    if args:
        if not (module.training or options or args[1:]):
            exact = module._in_integers(args[0])
            if exact is not None:
                return exact
        return module.forward(module.on_input(args[0]), *args[1:], **options)
    first = next(iter(options))
    return module.forward(**{**options, first: module.on_input(options[first])})
