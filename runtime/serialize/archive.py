"""ZIP archives, read in place: the central directory now, members when asked.

Format: PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3 (ZIP64). The standard library's
reader copies what it reads; values of a model are better mapped.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from burnish._files.budget import Budget
from burnish._files.shown import shown
from burnish.errors import RecordError
from burnish.serialize.inflate import inflated

_END, _LOCATOR, _END64 = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06"
_CENTRAL, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"
_STORED, _DEFLATED = 0, 8
_MEMBER = 300  # bytes of memory for one


class Member(NamedTuple):
    """One file of an archive; `start` is where its local header is."""

    method: int
    crc: int
    packed: int
    size: int
    start: int


class Archive:
    """The members of a ZIP archive by name. Raises RecordError when it is damaged."""

    def __init__(self, data: memoryview, where: str, budget: Budget):
        self.data = data
        self.where = where
        self.budget = budget
        self.members: dict[str, Member] = {}
        self.inflated: dict[str, Any] = {}
        count, start, stop = self._directory()
        at = start
        for _ in range(count):
            budget.take(_MEMBER)
            at = self._central(at, stop)

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def size(self, name: str) -> int:
        """The bytes of a member when unpacked."""
        return self.members[name].size

    def read(self, name: str, checked: bool = False) -> Any:
        """The bytes of a member; a view of the file, or kept when it is compressed.

        checked: compare its checksum. Raises RecordError when it is damaged.
        """
        member = self.members[name]
        if name in self.inflated:
            return self.inflated[name]
        data: Any = self._stored(name, member)
        if member.method == _DEFLATED:
            data = self.inflated[name] = self._inflated(name, member, data)
        if checked and member.crc:  # torch writes 0 where CRCs are switched off
            import zlib

            if zlib.crc32(data) != member.crc:
                raise self._damage(f"{shown(name)} does not have its checksum")
        return data

    def _stored(self, name: str, member: Member) -> memoryview:
        head = self._part(member.start, 30)
        if head[:4] != _LOCAL:
            raise self._damage(f"expected {shown(name)} at byte {member.start}")
        begin = member.start + 30 + sum(struct.unpack("<HH", head[26:30]))
        if begin + member.packed > len(self.data):
            raise self._damage(f"{shown(name)} ends behind the end of the file")
        return self.data[begin : begin + member.packed]

    def _inflated(self, name: str, member: Member, data: memoryview) -> memoryview:
        try:
            made = inflated(data, self.budget)
        except ValueError as error:
            if isinstance(error, RecordError):
                raise
            raise self._damage(f"{shown(name)}: {error}") from None
        if len(made) != member.size:
            raise self._damage(
                f"{shown(name)}: expected {member.size} bytes unpacked, got {len(made)}"
            )
        return made

    def _directory(self) -> tuple[int, int, int]:
        """How many members there are, and where their list starts and ends."""
        tail = max(0, len(self.data) - 65557)
        at = bytes(self.data[tail:]).rfind(_END)
        if at < 0:
            raise self._damage("expected a list of members at its end; is it cut off?")
        at += tail
        count, size, start = struct.unpack("<HII", self._part(at, 22)[10:20])
        if 0xFFFF in (count, size & 0xFFFF, start & 0xFFFF) and at >= 20:
            locator = self._part(at - 20, 20)
            if locator[:4] == _LOCATOR:
                place = struct.unpack("<Q", locator[8:16])[0]
                end = self._part(place, 56)
                if end[:4] != _END64:
                    raise self._damage("expected its ZIP64 end, got something else")
                count, size, start = struct.unpack("<QQQ", end[32:56])
        if start + size > len(self.data) or count * 46 > size:
            raise self._damage("expected its list of members within the file")
        return count, start, start + size

    def _central(self, at: int, stop: int) -> int:
        """Take in the member described at byte `at`; where the next one is."""
        head = self._part(at, 46)
        if head[:4] != _CENTRAL:
            raise self._damage(f"expected a member's description at byte {at}")
        method, _, _, crc, packed, size = struct.unpack("<HHHIII", head[10:28])
        lengths = struct.unpack("<HHH", head[28:34])
        (start,) = struct.unpack("<I", head[42:46])
        end = at + 46 + sum(lengths)
        if end > stop:
            raise self._damage(f"the description at byte {at} ends behind the list")
        raw = bytes(self.data[at + 46 : end])
        name = raw[: lengths[0]].decode("utf-8", "replace")
        extra = raw[lengths[0] : lengths[0] + lengths[1]]
        size, packed, start = _wide(extra, size, packed, start)
        if method not in (_STORED, _DEFLATED) or head[8] & 1:
            raise self._damage(
                f"{shown(name)} is compressed or encrypted in an unknown way"
            )
        if method == _STORED and size != packed:
            raise self._damage(f"{shown(name)} has two sizes, {size} and {packed}")
        if name in self.members:
            raise self._damage(f"{shown(name)} occurs twice")
        self.members[name] = Member(method, crc, packed, size, start)
        return end

    def _part(self, at: int, count: int) -> bytes:
        if not 0 <= at <= len(self.data) - count:
            raise self._damage(f"expected {count} bytes at byte {at}, got the end")
        return bytes(self.data[at : at + count])

    def _damage(self, problem: str) -> RecordError:
        return RecordError(f"{self.where}: ZIP archive: {problem}")


def _wide(extra: bytes, *narrow: int) -> list[int]:
    """Sizes and offset; those that are all ones are in the ZIP64 field."""
    wide: bytes = b""
    at = 0
    while at + 4 <= len(extra):
        tag, length = struct.unpack("<HH", extra[at : at + 4])
        if tag == 1:
            wide = extra[at + 4 : at + 4 + length]
        at += 4 + length
    made = []
    for value in narrow:
        if value == 0xFFFFFFFF and len(wide) >= 8:
            (value,) = struct.unpack("<Q", wide[:8])
            wide = wide[8:]
        made.append(value)
    return made
