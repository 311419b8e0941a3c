"""Weights into modules and out of them, where names, layouts or precisions differ.

`load` and `save` are Burn's stores: keys renamed, parts chosen, layouts of other
frameworks, a report of what was done. Files that fit as they are need only
`module.load_file` and `module.save_file`.
"""

from burnish.nn.core.fit import Report
from burnish.serialize import (
    Inert,
    LazyTensor,
    Weights,
    open_weights,
    read_pickle_data,
)
from burnish.store.config import config_from_file
from burnish.store.filter import Filter
from burnish.store.frameworks import BURN, FLAX, KERAS, PYTORCH
from burnish.store.layout import Layout, Rule
from burnish.store.listing import listing
from burnish.store.load import load
from burnish.store.precision import Precision
from burnish.store.pretrained import save_pretrained
from burnish.store.save import collect, save

__all__ = [
    "BURN",
    "FLAX",
    "KERAS",
    "PYTORCH",
    "Filter",
    "Inert",
    "Layout",
    "LazyTensor",
    "Precision",
    "Report",
    "Rule",
    "Weights",
    "collect",
    "config_from_file",
    "listing",
    "load",
    "open_weights",
    "read_pickle_data",
    "save",
    "save_pretrained",
]
