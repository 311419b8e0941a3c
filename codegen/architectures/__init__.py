"""Models that a configuration describes: a Hugging Face folder as source.

In: config.json, read key by key by its family, and the folder's weights. Out: source
from the family's template, weights under the source's names, which are transformers'.
Invariant: a key that would change the model is honoured or refused, never ignored.
"""

from burnish.codegen.architectures.build import (
    Architecture,
    build,
    is_model_folder,
    unknown,
)
from burnish.codegen.architectures.config import Config
from burnish.codegen.architectures.families import family

__all__ = ["Architecture", "Config", "build", "family", "is_model_folder", "unknown"]
