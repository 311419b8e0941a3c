"""What one of several modules is called: its list's name in the singular."""

import pytest

from burnish.codegen.arrange.scopes.group_kind import singular


@pytest.mark.parametrize(
    ("several", "one"),
    [
        ("layers", "layer"),
        ("blocks_2", "block"),
        ("self_attn_layers", "self_attn_layer"),
        ("values", "value"),
        ("stages", "stage"),
        ("caches", "cache"),
        ("keys", "key"),
        ("queries", "query"),
        ("probabilities", "probability"),
        ("movies", "movie"),
        ("ties", "tie"),
        ("branches", "branch"),
        ("patches", "patch"),
        ("approaches", "approach"),
        ("boxes", "box"),
        ("biases", "bias"),
        ("losses", "loss"),
        ("axes", "axis"),
        ("indices", "index"),
        ("matrices", "matrix"),
        ("gpus", "gpu"),
        ("betas", "beta"),
    ],
)
def test_of_several(several: str, one: str) -> None:
    assert singular(several) == one


@pytest.mark.parametrize(
    "name", ["qkv_bias", "pos", "axis", "status", "focus", "process", "series", "lens"]
)
def test_of_one_already(name: str) -> None:
    assert singular(name) == name
