"""All kernels of this package: importing this module registers them."""

from burnish.ops._cpu import activation as activation
from burnish.ops._cpu import along as along
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
