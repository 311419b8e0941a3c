"""Protobuf's wire format, without an object for each tensor or number.

In: a ModelProto's bytes, memory-mapped. Out: the same message in few bytes, and what
was cut out of it: references into the file, and arrays of attributes.
Invariant: nothing is parsed twice, and the message says the same but for what is cut.
"""

from burnish.codegen.readers.wire.elements import Table as Table
from burnish.codegen.readers.wire.elements import table_of as table_of
from burnish.codegen.readers.wire.fields import BYTES as BYTES
from burnish.codegen.readers.wire.fields import VARINT as VARINT
from burnish.codegen.readers.wire.fields import Buffer as Buffer
from burnish.codegen.readers.wire.fields import WireError as WireError
from burnish.codegen.readers.wire.fields import fields as fields
from burnish.codegen.readers.wire.slim import SELF as SELF
from burnish.codegen.readers.wire.slim import TooManyError as TooManyError
from burnish.codegen.readers.wire.slim import slim as slim
