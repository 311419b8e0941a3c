"""Passes over the Graph, and their order.

In: the Graph. Out: the Graph, changed in place, and whether it was.
Invariant: the numbers stay: random operators are never merged or folded, broadcasts
never dropped. A fused node may be newer than the model's opset: its own `version` is
asked first. What ONNX lacks is in the domain `burnish`: `Linear(x, weight (in, out),
bias (out,))`, `LayerNormalization(x)` without a scale, `Recurrent`,
`RecurrentCell`.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from burnish.codegen.account import Account, Accounts
from burnish.codegen.passes import graph as g
from burnish.codegen.passes.constants.decide_if import decide_branches
from burnish.codegen.passes.constants.drop_dead import drop_dead
from burnish.codegen.passes.constants.drop_identities import drop_identities
from burnish.codegen.passes.constants.fold_constants import fold_constants
from burnish.codegen.passes.constants.inline_if import inline_constant_if
from burnish.codegen.passes.constants.mark_folded import mark_folded
from burnish.codegen.passes.constants.merge_branches import merge_branches
from burnish.codegen.passes.cse.chain_concats import chain_concats
from burnish.codegen.passes.cse.share_angles import share_angles
from burnish.codegen.passes.cse.share_masks import share_masks
from burnish.codegen.passes.cse.share_parts import share_parts
from burnish.codegen.passes.fuse import fuse_known_forms
from burnish.codegen.passes.layout.channels_first import channels_first
from burnish.codegen.passes.layout.join_slices import join_slices
from burnish.codegen.passes.layout.merge_views import merge_views
from burnish.codegen.passes.layout.repeat_elements import repeat_elements
from burnish.codegen.passes.layout.spatial_sizes import spatial_sizes
from burnish.codegen.passes.layout.unmerge_heads import unmerge_heads
from burnish.codegen.passes.recurrent.loops import recurrent_loops
from burnish.codegen.passes.recurrent.stack import stack_recurrent
from burnish.codegen.passes.recurrent.states import loop_states
from burnish.codegen.passes.recurrent.steps import recurrent_steps
from burnish.codegen.passes.recurrent.twins import same_states
from burnish.codegen.passes.recurrent.unrolled import unrolled_layers
from burnish.codegen.passes.shapes.later_inputs import later_inputs
from burnish.codegen.passes.shapes.propagate import propagate_sizes
from burnish.codegen.passes.shapes.softmax_rows import softmax_rows
from burnish.codegen.passes.weights.offsets import unfold_offsets
from burnish.codegen.passes.weights.tie import tie_weights
from burnish.codegen.passes.weights.unfold import unfold_weights
from burnish.codegen.passes.weights.untie import untie_weights
from burnish.codegen.passes.weights.widen import widen_integers

Pass = Callable[[ir.Model, Account], bool]

PASSES: tuple[Pass, ...] = (
    later_inputs,  # before all that asks for bounds and axes
    decide_branches,  # before they are inlined
    inline_constant_if,  # before all that looks at a branch that never runs
    merge_branches,  # before weights that both branches read are untied
    mark_folded,  # while names still show what constants were computed from
    unfold_offsets,  # before what a bias was folded from is forgotten
    unfold_weights,  # first: tied weights are recognized by names
    untie_weights,  # before the identities that tell of it are gone
    share_parts,  # before parts are folded, which would train apart
    propagate_sizes,  # so that what changes no shape is seen to change none
    softmax_rows,  # before channels move and patterns ask for the axis
    drop_identities,  # so that patterns see real producers
    repeat_elements,  # before views merge, and channels move, which are between
    join_slices,  # before views merge, which are around the layers
    channels_first,  # so that what follows meets layers, not the axes between them
    spatial_sizes,  # behind the channels' move: it knows sizes of all axes
    recurrent_loops,  # so that they stack
    loop_states,  # behind recurrent layers, which know loops as the file has them
    same_states,  # behind the capture of invariants, which makes computations alike
    unrolled_layers,  # so that they stack
    recurrent_steps,  # before products and sums of gates become layers of their own
    stack_recurrent,  # before views merge, which hide the layers' own
    share_angles,  # so that they become inputs of layers
    unmerge_heads,  # before views merge: it removes some of them
    merge_views,  # patterns know a swap of axes as one Transpose
    fuse_known_forms,  # before folding, which would tear the patterns
    share_masks,  # after attention fusion, which identifies masks
    tie_weights,  # behind the fusion of products with their sums
    chain_concats,  # layers that take all before them take one tensor
    fold_constants,  # known values are not computed at run time
    widen_integers,  # behind the patterns, which know tables as the file has them
    drop_dead,  # last: the others leave orphans
)
#: What runs with --no-simplify: nodes and weights that nothing reads are no model, and
#: no file of weights holds integers of 4 bits.
NEEDED: tuple[Pass, ...] = (widen_integers, drop_dead)
_ROUNDS = 20


def run(
    model: ir.Model,
    accounts: Accounts | None = None,
    *,
    simplify: bool = True,
) -> bool:
    """Repeat the passes until nothing changes; True if anything did."""
    accounts = accounts or Accounts()
    if not simplify:
        return sum(step(model, accounts.of(step.__name__)) for step in NEEDED) > 0
    changed = False
    for _ in range(_ROUNDS):
        again = False
        for step in PASSES:
            again |= step(model, accounts.of(step.__name__))
        changed |= again
        if not again:
            break
        g.separate_names(model)
    return changed


def places(model: ir.Model) -> dict[str, int]:
    """The nodes that accounts refer to, in the order of the file."""
    names = [*(v.name for v in model.graph.inputs), *model.graph.initializers]
    names += map(g.label, g.all_nodes(model))
    return {name: place for place, name in enumerate(names) if name}
