"""Networks of words and patches, written once for `burnish.nn` and `torch.nn` alike.

nn is either module; functions have gelu and scaled_dot_product_attention.
"""

from __future__ import annotations

from typing import Any


def transformer(
    nn: Any, functions: Any, depth: int = 2, width: int = 256, heads: int = 8,
    words: int = 5000, is_causal: bool = False, rank: int = 0, dropout: float = 0.0,
) -> Any:  # fmt: skip
    """Words (N, T) -> (N, 10) from the first position; causal: (N, T, words).

    rank: of the adapters (LoRA) beside queries and values; all else is frozen.
    """
    stack = (
        layers_of(nn, depth, width, heads, dropout)
        if dropout
        else blocks_of(nn, functions, depth, width, heads, is_causal, rank)
    )

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(words, width)
            self.places = nn.Embedding(1024, width)
            self.blocks = stack
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, words if is_causal else 10)

        def forward(self, words: Any, places: Any) -> Any:
            x = self.norm(self.blocks(self.embedding(words) + self.places(places)))
            return self.head(x if is_causal else x[:, 0])

    return Model()


def vit(nn: Any, functions: Any, size: int = 64, patch: int = 8, width: int = 192,
        depth: int = 6, heads: int = 3, dropout: float = 0.0) -> Any:  # fmt: skip
    """ViT-Ti's width: images (N, 3, size, size) -> (N, 10), the mean of all patches"""
    stack = (
        layers_of(nn, depth, width, heads, dropout)
        if dropout
        else blocks_of(nn, functions, depth, width, heads, False, 0)
    )

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.places = nn.Embedding((size // patch) ** 2, width)
            self.blocks = stack
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, 10)

        def forward(self, x: Any, places: Any) -> Any:
            x = self.patches(x).reshape(x.shape[0], width, -1).swapaxes(1, 2)
            x = self.norm(self.blocks(x + self.places(places)))
            return self.head(x.mean(1))

    return Model()


def layers_of(nn: Any, depth: int, width: int, heads: int, dropout: float) -> Any:
    """The library's own layers, with dropout: (N, T, width) -> (N, T, width)"""
    setting = {"activation": "gelu", "batch_first": True, "norm_first": True}
    return nn.Sequential(
        *(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, **setting)
            for _ in range(depth)
        )
    )


def blocks_of(nn: Any, functions: Any, depth: int, width: int, heads: int,
           is_causal: bool, rank: int) -> Any:  # fmt: skip
    """Blocks with layer norm first: (N, T, width) -> (N, T, width)"""
    gelu, attend = functions.gelu, functions.scaled_dot_product_attention

    class Adapted(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(width, width)
            self.down = nn.Linear(width, rank, bias=False)
            self.up = nn.Linear(rank, width, bias=False)

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.up(self.down(x)) * 2.0

    linear = (lambda *_: Adapted()) if rank else nn.Linear

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.query = linear(width, width)
            self.key = nn.Linear(width, width)
            self.value = linear(width, width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.linear1 = nn.Linear(width, 4 * width)
            self.linear2 = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            z = self.norm1(x)
            q, k, v = (
                layer(z).reshape(n, t, heads, width // heads).swapaxes(1, 2)
                for layer in (self.query, self.key, self.value)
            )
            y = attend(q, k, v, is_causal=is_causal)
            x = x + self.out(y.swapaxes(1, 2).reshape(n, t, width))
            return x + self.linear2(gelu(self.linear1(self.norm2(x))))

    return nn.Sequential(*(Block() for _ in range(depth)))


def tagger(nn: Any, width: int = 128) -> Any:
    """An LSTM over words (N, T) -> (N, T, 20)"""

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(5000, width)
            self.lstm = nn.LSTM(width, width, batch_first=True)
            self.head = nn.Linear(width, 20)

        def forward(self, words: Any) -> Any:
            return self.head(self.lstm(self.embedding(words))[0])

    return Model()
