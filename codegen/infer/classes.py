"""Turn the module tree into classes: equal blocks once, repeats as lists."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from burnish.codegen.arrange.analysis.structural_hash import signature
from burnish.codegen.arrange.classes.members import extending, stored
from burnish.codegen.infer.chains import joined
from burnish.codegen.infer.forwards import forward
from burnish.codegen.infer.layers.leaves import Doubt, Leaf
from burnish.codegen.infer.names import attributes, class_of, usable
from burnish.codegen.infer.parts import Part, computed, layer, weight
from burnish.codegen.infer.tree import Node
from burnish.codegen.program import (
    Assign,
    BinOp,
    Block,
    Call,
    ClassPlan,
    Expression,
    Keyed,
    ListOrTuple,
    Literal,
    ModuleCall,
    Name,
    SelfAttr,
    Value,
    Weight,
    callee,
    under,
)


@dataclass
class Classes:
    """Writes the classes of a tree, small to large; the model last."""

    leaves: dict[Node, Leaf]
    doubt: Doubt
    plans: dict[str, ClassPlan] = field(default_factory=dict)
    wanted: Counter[str] = field(default_factory=Counter)

    def model(self, root: Node) -> tuple[list[ClassPlan], list[tuple[str, Weight]]]:
        """Every class, and every tensor by its path in the model."""
        if root in self.leaves or is_container(root):
            plan, weights = self._extending(root)
        else:
            plan, weights = self._class(root, "Model", is_model=True)
        return [*self.plans.values(), plan], weights

    # --- parts ---

    def _part(self, node: Node) -> Part:
        if node in self.leaves:
            leaf = self.leaves[node]
            if leaf.kind == "Conv1D":
                self._conv1d()
            tensors = dict(node.tensors)
            if leaf.kind == "MultiheadAttention":
                out = node.children["out_proj"].tensors
                tensors |= {f"out_proj.{name}": t for name, t in out.items()}
            return layer(leaf, tensors)
        if node.is_numbered:
            parts = {int(n): self._part(child) for n, child in node.children.items()}
            return joined(node.name, parts)
        if is_container(node):
            return self._keyed(node)
        plan, weights = self._class(node, class_of(node.path))
        return Part(Call(self._known(plan)), "module", weights)

    def _keyed(self, node: Node) -> Part:
        """Things under names that no attribute could have: a dict, or a list."""
        made: dict[str, Expression] = {}
        weights: list[tuple[str, Weight]] = []
        for name, tensor in node.tensors.items():
            made[name] = stored(computed(held := weight(name, tensor)))
            weights.append((name, held))
        for name, child in node.children.items():
            part = self._part(child)
            made[name] = part.made
            weights += under(name, part.weights)
        if list(made) == [str(n) for n in range(len(made))]:
            return Part(ListOrTuple(tuple(made.values())), "loose", weights)
        return Part(Keyed(tuple(made.items())), "loose", weights)

    # --- classes ---

    def _class(
        self, node: Node, name: str, is_model: bool = False
    ) -> tuple[ClassPlan, list[tuple[str, Weight]]]:
        where = f"{node.path}." if node.path else ""
        called = attributes((*node.tensors, *node.children), where, self.doubt)
        members: list[tuple[str, Expression]] = []
        weights: list[tuple[str, Weight]] = []
        bare: list[str] = []
        for key, tensor in node.tensors.items():
            held = weight(key, tensor)
            members.append((called[key], stored(computed(held))))
            weights.append((called[key], held))
            if held.trained:
                bare.append(called[key])
        parts = {called[key]: self._part(child) for key, child in node.children.items()}
        for attribute, part in parts.items():
            members.append((attribute, part.made))
            weights += under(attribute, part.weights)
        inputs, block = forward(parts, bare, is_model)
        return ClassPlan(name, members, inputs, block), weights

    def _extending(self, node: Node) -> tuple[ClassPlan, list[tuple[str, Weight]]]:
        """A model that is one layer, or a Sequential with numbers or keys for names."""
        part = self._part(node)
        made = part.made
        match made:
            case ListOrTuple(items=(Keyed() as only,)):
                made = Keyed((("0", only),))
        base = callee(made) or "nn.Sequential"
        x = Value("inputs")
        block = Block([], [])
        if part.form == "loose":
            step = Call("nn.Unwritten", (Literal(("whole",)),))
            y = Value("x")
            block = Block([Assign((y,), (), ModuleCall(step, (x,)))], [y])
        plan = ClassPlan("Model", [("", extending(made))], [x], block, base=base)
        return plan, part.weights

    def _known(self, plan: ClassPlan) -> str:
        """The name of the class with this body; a new one where there is none."""
        key = f"{plan.name}{signature(plan)}"
        if key not in self.plans:
            self.wanted[plan.name] += 1
            plan.name = f"{plan.name}#{self.wanted[plan.name]}"
            self.plans[key] = plan
        return self.plans[key].name

    def _conv1d(self) -> None:
        """GPT-2's layer, a Linear that keeps its weight as (in, out)."""
        if "Conv1D" in self.plans:
            return
        x = Value("x")
        start = Call("nn.init.normal", (Literal(0.02),))
        shape = ListOrTuple((Name("in_features"), Name("out_features")), "()")
        bias = ListOrTuple((Name("out_features"),), "()")
        members: list[tuple[str, Expression]] = [
            ("weight", Call("nn.Param", (start, shape))),
            ("bias", Call("nn.Param", (Name("nn.init.zeros"), bias))),
        ]
        result = BinOp("+", BinOp("@", x, SelfAttr(("weight",))), SelfAttr(("bias",)))
        self.plans["Conv1D"] = ClassPlan(
            "Conv1D",
            members,
            [x],
            Block([], [result]),
            contract="(..., in_features) -> (..., out_features), weight (in, out)",
            parameters=["in_features", "out_features"],
        )


def is_container(node: Node) -> bool:
    """Whether it only holds things, under names that are no attributes."""
    if node.tensors and node.children:
        return False
    names = [*node.tensors, *node.children]
    return not all(map(usable, names))
