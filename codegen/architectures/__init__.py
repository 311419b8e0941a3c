"""Models that a configuration describes: a Hugging Face folder as source.

config.json names the architecture and its sizes. A family (`encoders.py`, ...) reads
it key by key and a template of `templates/architectures/` writes what this
configuration needs and nothing else. `fit` brings the folder's weights under the names
that the source has, which are transformers' own.
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
