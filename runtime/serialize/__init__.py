"""Weights files: safetensors and PyTorch's own, mapped to read, streamed to write.

`open_weights` is the door to every kind of file. Safetensors: 8 bytes little-endian
header length, a JSON header `{name: {dtype, shape, data_offsets}}`, then the bytes
(github.com/huggingface/safetensors, README). Files come out byte for byte as the
safetensors package writes them.
"""

from burnish.serialize.files import is_weights, open_weights, read_pickle_data
from burnish.serialize.header import Entry, Header
from burnish.serialize.inert import Inert
from burnish.serialize.lazy import LazyTensor
from burnish.serialize.read import from_bytes, header, load_file, release
from burnish.serialize.seal import SEAL, is_broken, is_sealed
from burnish.serialize.weights import Weights
from burnish.serialize.write import is_pytorch_name, save_file, to_bytes, write_stream

__all__ = [
    "SEAL",
    "Entry",
    "Header",
    "Inert",
    "LazyTensor",
    "Weights",
    "from_bytes",
    "header",
    "is_broken",
    "is_pytorch_name",
    "is_sealed",
    "is_weights",
    "load_file",
    "open_weights",
    "read_pickle_data",
    "release",
    "save_file",
    "to_bytes",
    "write_stream",
]
