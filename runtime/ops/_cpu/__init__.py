"""Operators' kernels of the C library, and those of their gradients.

Takes float32 arrays that are worth a call, where the library was built before; for
everything else the operator's plain value takes over. Results are the same bits for any
number of threads. Importing a module of this package registers its kernels.
"""

from burnish.ops._cpu import activation as activation
from burnish.ops._cpu import arithmetic as arithmetic
from burnish.ops._cpu import attention as attention
from burnish.ops._cpu import convolution as convolution
from burnish.ops._cpu import cumulative as cumulative
from burnish.ops._cpu import norm as norm
from burnish.ops._cpu import pool as pool
from burnish.ops._cpu import recurrent as recurrent
from burnish.ops._cpu import rows as rows
from burnish.ops._cpu import sums as sums
from burnish.ops._cpu import trees as trees
