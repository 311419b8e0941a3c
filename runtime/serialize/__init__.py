"""The safetensors format, read by memory map and written as a stream.

Format: 8 bytes little-endian header length, a JSON header `{name: {dtype, shape,
data_offsets}}`, then the bytes (github.com/huggingface/safetensors, README). Files come
out byte for byte as the safetensors package writes them.
"""

from burnish.serialize.header import Entry, Header
from burnish.serialize.read import from_bytes, header, load_file
from burnish.serialize.write import save_file, to_bytes, write_stream

__all__ = [
    "Entry",
    "Header",
    "from_bytes",
    "header",
    "load_file",
    "save_file",
    "to_bytes",
    "write_stream",
]
