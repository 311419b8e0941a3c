"""The C library of kernels: found in the user's cache, or built at its first use.

`library()` gives it, or None on a machine without a compiler; then plans run operators
as they are. See `burnish kernels info`. `kernels.build` is imported where it is needed:
a deployed model does not build.
"""

from burnish.kernels.library import Library, check_bf16, library
from burnish.kernels.threads import num_threads, set_num_threads

__all__ = ["Library", "check_bf16", "library", "num_threads", "set_num_threads"]
