"""Build the C library that `burnish.compile` runs on, or say what there is.

It is built by itself when it is first needed: `build` does so ahead, in an image for
example. It needs a C compiler: cc, gcc, clang or zig (pip install ziglang), or $CC.
"""

from __future__ import annotations

import argparse

HELP = "build the library of kernels, or say what there is"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "action", choices=("build", "info"), help="what to do with the library"
    )


def run(options: argparse.Namespace) -> int:
    from burnish.codegen.tools import console
    from burnish.kernels import Library, build, num_threads

    if options.action == "build":
        console.line(str(Library(build.built(quiet=True)).file))
        return 0
    words = [" ".join(each) for each in build.compilers()]
    console.line(f"compilers: {', '.join(words) or 'none'}")
    console.line(f"threads: {num_threads()}")
    file = build.found()
    if file is None:
        console.line(f"library: none yet, it would be {build.folder()}")
        return 0
    console.line(f"library: {file}, vectors of {Library(file).width} numbers")
    return 0
