"""The number of threads that kernels use."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from burnish.errors import InputError

_MOST = 64
_chosen: int | None = None


def set_num_threads(count: int | None) -> None:
    """Let kernels use `count` threads; None is as many as this process has cores.

    Plans that were made for another number are made again.
    """
    global _chosen
    if count is not None and (isinstance(count, bool) or not 0 < count <= _MOST):
        raise InputError(
            f"set_num_threads: expected a number from 1 to {_MOST}, got {count!r}"
        )
    _chosen = count


def num_threads() -> int:
    """The number set, else OMP_NUM_THREADS, else the cores this process may use."""
    return _chosen or _default()


@functools.cache
def _default() -> int:
    """The number where none is set; looked up once, as it takes a while."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), _MOST)
    return max(1, min(_cores(), _share_of_group(), _MOST))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _share_of_group(root: Path = Path("/sys/fs/cgroup")) -> int:
    """The whole cores of this process's control group, many where it has no limit."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return _MOST
    if not quota.isdecimal() or not period.isdecimal() or not int(period):
        return _MOST
    return max(1, int(quota) // int(period))
