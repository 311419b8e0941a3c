"""Models of several graphs: classes that are equal are one, others keep apart."""

from burnish.codegen.arrange.parts import joined
from burnish.codegen.program import Block, Call, ClassPlan, Literal, Plan


def layer(name: str, size: int) -> ClassPlan:
    linear = Call("nn.Linear", (Literal(size), Literal(size)))
    return ClassPlan(name, [("fc", linear)], [], Block([], []))


def top(*layers: str) -> ClassPlan:
    members = [(f"part{i}", Call(each)) for i, each in enumerate(layers)]
    return ClassPlan("Model", members, [], Block([], []))


def test_a_class_that_another_part_has_keeps_its_name_among_new_ones():
    """Layer2 of the encoder is Layer3 of the decoder, and its own Layer3 is new."""
    decoder = [layer("Layer", 2), layer("Layer2", 3), layer("Layer3", 4)]
    encoder = [layer("Layer", 5), layer("Layer2", 4), layer("Layer3", 6)]
    names = ["Layer", "Layer2", "Layer3"]
    parts = {
        "decoder": Plan([*decoder, top(*names)], []),
        "encoder": Plan([*encoder, top(*names)], []),
    }
    plan = joined(Plan([top()], []), parts)
    classes = {each.name: each for each in plan.classes}

    def sizes(part: str) -> list[int]:
        inner = [classes[name] for name in classes[part].calls()]
        return [each.members[0][1].args[0].value for each in inner]

    assert [call.function for _, call in classes["Model"].members] == [
        "Decoder",
        "Encoder",
    ]
    assert sizes("Decoder") == [2, 3, 4]
    assert sizes("Encoder") == [5, 4, 6]
