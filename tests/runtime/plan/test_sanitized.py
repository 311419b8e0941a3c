"""Kernels under the compiler's checks of addresses and of undefined behaviour.

CI runs it, with BURNISH_SANITIZE=1: it builds the library once more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from burnish.kernels import build


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BURNISH_SANITIZE"), reason="a step of CI")
def test_kernels_read_and_write_what_is_theirs(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc, whose checks can be loaded before Python")
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if not Path(found).is_absolute():
        pytest.skip("gcc has no library of checks here")
    library = build.built(build.SANITIZERS, tmp_path, quiet=True)
    setting = {
        "BURNISH_KERNELS": str(library),
        "LD_PRELOAD": found,
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "2",  # kernels share their work out, in each worker
    }
    names = (
        *("kernels", "conv_kernels", "float16", "halo", "in_place", "winograd"),
        *("gradients", "along_gradients", "recurrent_gradients"),
        *("quantized", "rounded_sequences", "codes", "same", "gemv", "by_sample"),
        *("tiles", "optimizer_kernels", "draws", "whole", "gathers", "bf16"),
        *("support_vectors", "narrow", "planes", "sampled", "fourier", "targets"),
    )
    files = [Path(__file__).with_name(f"test_{name}.py") for name in names]
    ops = Path(__file__).parents[1] / "ops"
    kinds = ("cpu", "cpu_trees", "cpu_updates", "row_kernels", "sum_kernels")
    kinds += ("along_kernels",)
    files += [ops / f"test_{name}.py" for name in kinds]
    files.append(Path(__file__).parents[1] / "test_rng.py")
    words = [sys.executable, "-m", "pytest", "-q", "-x", *map(str, files)]
    done = subprocess.run(
        words, env={**os.environ, **setting}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "runtime error" not in done.stderr, done.stderr[-3000:]
