"""NumPy's archive: numpy.load reads it, and archives of numpy.savez are read here.

A ZIP archive has a CRC-32 of each member; its comment here is one of the whole file.
Types that NumPy does not know by itself, such as bfloat16, are held as bytes; the page
beside the arrays says what they are.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np

from burnish._files import jsontext, npy
from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.record.elements import Arrays, from_bytes, name_of, to_bytes
from burnish.record.format import Content, Format, check_sum
from burnish.serialize.archive import Archive

_PAGE = "burnish.json"
_COMMENT = b"burnish.crc32:"
_END = re.compile(_COMMENT + rb"([0-9a-f]{8})\Z")
_SAFE = re.compile(r"[\w.\- ]{1,200}", re.ASCII)


def write(out: BinaryIO, content: Content) -> None:
    """Write a record; the same one gives the same bytes."""
    rows: dict[str, list[Any]] = {}
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, array in content.arrays.items():
            member = f"{name if _SAFE.fullmatch(name) else f'#{len(rows)}'}.npy"
            rows[name] = [member, name_of(array), array.shape]
            own = array.dtype.isbuiltin == 1
            plain = array if own else np.frombuffer(to_bytes(array), np.uint8)
            with archive.open(zipfile.ZipInfo(member), "w", force_zip64=True) as file:
                np.lib.format.write_array(
                    file, np.asanyarray(plain), allow_pickle=False
                )
        page = json.dumps({**content.page, "tensors": rows})
        archive.writestr(zipfile.ZipInfo(_PAGE), page)
        archive.comment = _COMMENT + bytes(8)
    before = whole.getbuffer()[:-8]
    out.write(before)
    out.write(b"%08x" % zlib.crc32(before))


def read(data: memoryview, budget: Budget) -> Content:
    """Read a record, or an archive that numpy.savez wrote. Pickles are refused."""
    end = _END.search(bytes(data[-22:]))
    if end:
        check_sum(data[:-8], int(end[1], 16))
    archive = Archive(data, "expected a whole ZIP archive", budget)
    if _PAGE not in archive:
        arrays = {
            name.removesuffix(".npy"): _member(archive, name)
            for name in archive.members
        }
        return Content({"version": 1}, arrays)
    if not end:
        raise RecordError("expected a checksum at the end, found none")
    page = jsontext.parse(archive.read(_PAGE, checked=True), budget)
    rows = page.pop("tensors")
    found: Arrays = {}
    for name, (member, dtype, shape) in rows.items():
        array = _member(archive, member)
        if array.dtype.name != dtype:
            array = from_bytes(array.data, dtype, shape)
        found[name] = array
    return Content(page, found)


def _member(archive: Archive, name: str) -> np.ndarray:
    """An array that shares the memory of its member."""
    return npy.view(archive.read(name, checked=True), shown(name))


FORMAT = Format("NumPy", ".npz", lambda head: head.startswith(b"PK"), write, read)
