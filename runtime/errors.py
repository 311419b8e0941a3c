"""The runtime's exceptions; messages name the place, the expected and the given value.

BurnishError
├── ArgumentError    arguments that a function's signature lacks (also a TypeError)
├── CaptureError     a call that a program cannot hold, or one that it does not fit
├── DataError        an item of a dataset that cannot be loaded (also a ValueError)
├── DeviceError      a device that is not there, or tensors on different ones
├── GradientError    a gradient that was not recorded or does not exist
├── InputError       an argument's shape, dtype or value (also a ValueError)
│   └── PlaceError   an index beyond what there is (also an IndexError)
├── KernelError      the library of kernels, which cannot be built or loaded
├── RecordError      a file or record that does not fit (also a ValueError)
│   └── BudgetError  a file that asks for more memory or work than its size allows
└── UnwrittenError   a step of a model that nobody has written yet
"""


class BurnishError(Exception):
    """Base of everything that Burnish raises on purpose."""


class ArgumentError(BurnishError, TypeError):
    """Arguments that a function's signature does not have, or lacks."""


class CaptureError(BurnishError):
    """A step that a captured program cannot hold, or a call that it does not fit."""


class DataError(BurnishError, ValueError):
    """An item of a dataset that cannot be loaded; its cause is the error it met."""


class DeviceError(BurnishError):
    """A device that is not there, or tensors that live on different ones."""


class GradientError(BurnishError):
    """A gradient that was not recorded or does not exist."""


class InputError(BurnishError, ValueError):
    """An argument whose shape, dtype or value does not fit."""


class PlaceError(InputError, IndexError):
    """An index beyond what there is."""


class KernelError(BurnishError):
    """The library of kernels cannot be built or loaded."""


class RecordError(BurnishError, ValueError):
    """A weights file or record that is damaged or does not fit the module."""


class BudgetError(RecordError):
    """A file that asks for more memory or work than its size allows."""


class UnwrittenError(BurnishError):
    """A step that a model's file does not describe, called before it was written."""
