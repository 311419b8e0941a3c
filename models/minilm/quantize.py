"""Make the sentence encoder small, and see that it still ranks sentences.

    python -m burnish.models.minilm.quantize [--value q8s] [--block N] [--out FILE]

Prints what each kind of weights has lost, both sizes, and the ranking before and after.
The small weights load as all weights do: `Model.from_file(FILE)`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from burnish.models._originals import OriginalError, cache_folder
from burnish.models.minilm.infer import QUERY, SENTENCES, Encoder
from burnish.models.minilm.minilm import Model
from burnish.quantization import VALUES, Calibration, Level, Quantizer, QuantScheme


def scores(encode: Encoder) -> np.ndarray:
    """How near each sentence is to the query."""
    query, *vectors = encode([QUERY, *SENTENCES])
    return np.array(vectors) @ query


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--value", default="q8s", choices=VALUES)
    parser.add_argument(
        "--block", type=int, metavar="N", help="a scale for N values, not for a row"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        default=cache_folder("minilm") / "minilm.small.safetensors",
        help="where the weights go (default: %(default)s)",
    )
    options = parser.parse_args()
    try:
        encode = Encoder.from_package()
    except OriginalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1

    before = scores(encode)
    level = Level.block(options.block) if options.block else Level.channel(0)
    calibration = Calibration.min_max() if options.value == "q8s" else Calibration.mse()
    quantizer = Quantizer(calibration, QuantScheme(options.value, level=level))
    encode.model.quantize_weights(quantizer)
    encode.model.save_file(options.out)
    report = quantizer.report
    assert report is not None
    print(f"worst: {report.worst.path}, {report.worst.snr:.1f} dB")
    share = 100 * report.after / report.before
    print(f"{report.before:,} -> {report.after:,} bytes ({share:.1f} %), {options.out}")

    small = Encoder(Model.from_file(options.out), encode.tokenizer)
    after = scores(small)
    print(f"{QUERY}\nbefore   after")
    for i in np.argsort(-before):
        print(f"{before[i]:6.3f}  {after[i]:6.3f}  {SENTENCES[i]}")
    same = (np.argsort(-before) == np.argsort(-after)).all()
    print("the ranking is the same" if same else "the ranking has changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
