"""Every form of file that torch.save writes or once wrote, made by torch itself."""

import io
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict

import numpy as np
import torch

PROTOCOLS = (2, 3, 4, 5)


def saved(value, zipped=True, protocol=2):
    """The bytes of torch.save."""
    out = io.BytesIO()
    torch.save(
        value,
        out,
        pickle_protocol=protocol,
        _use_new_zipfile_serialization=zipped,
    )
    return out.getvalue()


def big_endian(data):
    """The ZIP archive as a big-endian machine writes it; tensors of float32 alone."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if name.endswith("/byteorder"):
                raw = b"big"
            elif "/data/" in name:
                raw = np.frombuffer(raw, "<f4").astype(">f4").tobytes()
            new.writestr(name, raw)
    return out.getvalue()


def tar(tensors):
    """The archive that torch wrote before 0.1.10, of float32 tensors by name."""
    keys = {name: 1000 + place for place, name in enumerate(tensors)}
    storages, parts = io.BytesIO(), io.BytesIO()
    pickle.dump(len(tensors), storages, 2)
    pickle.dump(len(tensors), parts, 2)
    for name, tensor in tensors.items():
        base = tensor.untyped_storage().nbytes() // 4
        values = torch.empty(0).set_(tensor.untyped_storage(), 0, (base,), (1,))
        pickle.dump((keys[name] + 500, "cpu", torch.FloatStorage), storages, 2)
        storages.write(struct.pack("<q", base) + values.numpy().tobytes())
        pickle.dump((keys[name], keys[name] + 500, torch.FloatTensor), parts, 2)
        parts.write(struct.pack("<ii", tensor.ndim, 0))
        parts.write(struct.pack(f"<{tensor.ndim}q", *tensor.shape))
        parts.write(struct.pack(f"<{tensor.ndim}q", *tensor.stride()))
        parts.write(struct.pack("<q", tensor.storage_offset()))
    pickle.dump([], storages, 2)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in (
            ("sys_info", pickle.dumps({"little_endian": True}, 2)),
            ("pickle", _by_id(OrderedDict(keys))),
            ("storages", storages.getvalue()),
            ("tensors", parts.getvalue()),
        ):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class _Key:
    def __init__(self, key):
        self.key = key


def _by_id(keys):
    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return str(value.key) if isinstance(value, _Key) else None

    out = io.BytesIO()
    Pickler(out, 2).dump(OrderedDict((n, _Key(k)) for n, k in keys.items()))
    return out.getvalue()


def as_numpy(tensor):
    """The values in the form in which they are read."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype is torch.chalf:
        tensor = tensor.to(torch.cfloat)
    if tensor.dtype is torch.bfloat16 or "float8" in str(tensor.dtype):
        tensor = tensor.float()
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def leaves(value, path=""):
    """(path, tensor) for every tensor in nested containers."""
    if isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, torch.Tensor | np.ndarray):
        yield path, value
