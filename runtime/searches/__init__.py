"""Greedy search, beam search and sampling, as onnxruntime's operators run them.

In: a decoder that takes ids with its past keys and values and gives logits with the
present ones, prompts (N, T), limits. Out: sequences (N, max_length), padded.
Invariant: tokens are those of onnxruntime's CPU provider, one by one, but for the mask
of presences that `scores.Rules` names.
"""

from burnish.searches.beams import beam_search
from burnish.searches.greedy import greedy_search, sampling

__all__ = ["beam_search", "greedy_search", "sampling"]
