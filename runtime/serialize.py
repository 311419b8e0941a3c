"""The safetensors format, read by memory map and written as a stream.

Format: 8 bytes little-endian header length, a JSON header `{name: {dtype, shape,
data_offsets}}`, then the bytes (github.com/huggingface/safetensors, README).
"""
