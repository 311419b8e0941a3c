"""The operators as methods of a tensor, spelled as NumPy and PyTorch spell them."""

from burnish.methods._bind import shape_from
from burnish.methods.arithmetic import ArithmeticMethods
from burnish.methods.convert import ConvertMethods
from burnish.methods.elements import ElementMethods
from burnish.methods.linalg import LinalgMethods
from burnish.methods.reduce import ReduceMethods
from burnish.methods.shape import ShapeMethods

__all__ = ["Methods", "shape_from"]


class Methods(
    ShapeMethods,
    ElementMethods,
    ArithmeticMethods,
    ReduceMethods,
    LinalgMethods,
    ConvertMethods,
):
    """Tensor's methods, except those to create, move and differentiate."""

    __slots__ = ()
