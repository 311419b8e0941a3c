"""BERT's tokenizer for lower-cased text: words and punctuation, then their pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

LONGEST_WORD = 100


class WordPiece:
    """Text to token ids, `[CLS] ... [SEP]`"""

    def __init__(self, vocabulary: Iterable[str]):
        self.ids = {piece: i for i, piece in enumerate(vocabulary)}

    def __call__(self, text: str) -> list[int]:
        pieces = [piece for word in words(text) for piece in self._pieces(word)]
        return [self.ids[piece] for piece in ("[CLS]", *pieces, "[SEP]")]

    def _pieces(self, word: str) -> list[str]:
        """The longest pieces that spell the word, from its beginning."""
        if len(word) > LONGEST_WORD:
            return ["[UNK]"]
        found: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                if (piece := prefix + word[start:end]) in self.ids:
                    break
            else:
                return ["[UNK]"]
            found.append(piece)
            start = end
        return found


def words(text: str) -> Iterator[str]:
    """Lower-cased words without accents; each mark and each CJK sign is one."""
    plain = unicodedata.normalize("NFD", "".join(map(_cleaned, text)).lower())
    word = ""
    for sign in plain:
        if unicodedata.category(sign) == "Mn":
            continue
        alone = _is_mark(sign) or _is_cjk(sign)
        if (alone or sign.isspace()) and word:
            yield word
            word = ""
        if alone:
            yield sign
        elif not sign.isspace():
            word += sign
    if word:
        yield word


def _cleaned(sign: str) -> str:
    """Spaces for white space, nothing for control characters."""
    if sign in "\t\n\r":
        return " "
    if sign == "\ufffd" or unicodedata.category(sign).startswith("C"):
        return ""
    return " " if unicodedata.category(sign) == "Zs" else sign


def _is_mark(sign: str) -> bool:
    """Punctuation, and every sign of ASCII that is no letter, digit or space."""
    if sign.isascii():
        return sign.isprintable() and not sign.isalnum() and not sign.isspace()
    return unicodedata.category(sign).startswith("P")


def _is_cjk(sign: str) -> bool:
    return any(
        first <= ord(sign) <= last
        for first, last in (
            (0x3400, 0x4DBF),
            (0x4E00, 0x9FFF),
            (0xF900, 0xFAFF),
            (0x20000, 0x2CEAF),
            (0x2F800, 0x2FA1F),
        )
    )
