"""Protobuf's wire format, without an object for each tensor or number.

In: a ModelProto's bytes, memory-mapped. Out: the same message in few bytes, and what
was cut out of it: references into the file, and arrays of attributes.
Invariant: nothing is parsed twice, and the message says the same but for what is cut.
"""

from burnish.codegen.readers.wire.elements import Table, table_of
from burnish.codegen.readers.wire.fields import (
    BYTES,
    VARINT,
    Buffer,
    WireError,
    fields,
)
from burnish.codegen.readers.wire.slim import SELF, TooManyError, slim

__all__ = [
    "BYTES",
    "SELF",
    "VARINT",
    "Buffer",
    "Table",
    "TooManyError",
    "WireError",
    "fields",
    "slim",
    "table_of",
]
