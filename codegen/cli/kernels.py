"""Build the C library that `burnish.compile` runs on, or say what there is.

It is built automatically when first needed; `build` does so ahead, in an image for
example. It needs a C compiler: cc, gcc, clang or zig (pip install ziglang), or $CC.
"""

from __future__ import annotations

import argparse

HELP = "build the library of kernels, or say what there is"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "action", choices=("build", "info"), help="what to do with the library"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.tools import console
    from burnish.kernels import Library, build, num_threads

    file = build.built(quiet=True) if options.action == "build" else build.found()
    found = Library(file) if file else None
    width, bf16 = (found.width, found.bf16) if found else (None, None)
    compilers = [" ".join(each) for each in build.compilers()]
    if options.json:
        facts = {"compilers": compilers, "threads": num_threads()}
        facts |= {"library": file and str(file), "vector_width": width, "bf16": bf16}
        console.emit(facts)
    elif options.action == "build":
        console.line(str(file))
    else:
        console.line(f"compilers: {', '.join(compilers) or 'none'}")
        console.line(f"threads: {num_threads()}")
        products = "products of bf16" if bf16 else "no products of bf16"
        built = f"{file}, vectors of {width} numbers, {products}"
        console.line(f"library: {built if file else f'none yet, {build.folder()}'}")
    return 0
