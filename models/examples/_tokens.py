"""Text as numbers: subwords of the `tokenizers` package, or whole words without it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

PAD = 0


class Tokens(Protocol):
    """Texts to ids and back; id 0 is padding."""

    size: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


def learned(texts: Sequence[str], size: int) -> Tokens:
    """At most `size` tokens, learnt from texts."""
    try:
        return Subwords(texts, size)
    except ImportError:
        return Words(texts, size)


class Subwords:
    """Byte pairs, as GPT-2 has them (pip install 'burnish[text]')."""

    def __init__(self, texts: Sequence[str], size: int):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        self.tokenizer = Tokenizer(models.BPE())
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["[PAD]"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self.tokenizer.train_from_iterator(texts, trainer)
        self.size = self.tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids)))


class Words:
    """Words and signs, each with the space before it; id 1 is any other one."""

    def __init__(self, texts: Sequence[str], size: int):
        counted = Counter(piece for text in texts for piece in self._pieces(text))
        self.pieces = ["", "?", *(piece for piece, _ in counted.most_common(size - 2))]
        self.ids = {piece: i for i, piece in enumerate(self.pieces) if i > 1}
        self.size = len(self.pieces)

    @staticmethod
    def _pieces(text: str) -> list[str]:
        return re.findall(r"\s?(?:\w+|[^\w\s])|\s", text)

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(piece, 1) for piece in self._pieces(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[i] for i in ids)
