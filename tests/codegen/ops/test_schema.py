"""Every rule's signature is its operator's schema, for every version it answers for."""

import inspect
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import burnish.codegen.ops
from burnish.codegen.ops import registry
from burnish.codegen.ops.rule.registry import Rule

OURS = {"burnish"}
REQUIRED = inspect.Parameter.empty
RULES = [rule for rules in registry.values() for rule in rules]
WRITTEN_FOR = 28
"""The newest opset whose operators have rules: their attributes are those of that."""
OLDEST = 7
"""The oldest opset that burnish reads."""


def versions(rule: Rule) -> list[int]:
    """The operator's versions that the rule answers for, the newest first."""
    known = {
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if (schema.domain, schema.name) == (rule.domain, rule.op_type)
    }
    newer = [
        r.since for r in registry[rule.domain, rule.op_type] if r.since > rule.since
    ]
    limit = min(newer, default=10_000)
    first = max((v for v in known if v <= rule.since), default=rule.since)
    oldest = OLDEST if rule.domain == "" else 1
    at_oldest = max((v for v in known if v <= oldest), default=0)
    return sorted(
        (v for v in known if max(first, at_oldest) <= v < limit), reverse=True
    )


OF_READERS = ("whole_lengths",)
"""Attributes that no file has: readers add them for what an exporter means."""


def parameters(rule: Rule) -> tuple[list[str], dict[str, object]]:
    """Names of inputs, and attributes with defaults, as the signature has them."""
    inputs, attributes = [], {}
    for p in inspect.signature(rule.function).parameters.values():
        if p.kind is not p.KEYWORD_ONLY:
            inputs.append(p.name.rstrip("_"))
        elif p.name not in ("node", *OF_READERS):
            attributes[p.name.rstrip("_")] = default(p.default)
    return inputs, attributes


def schema(rule: Rule, version: int) -> tuple[list[str], dict[str, object]]:
    """The same, as the specification has them."""
    found = onnx.defs.get_schema(rule.op_type, version, rule.domain)
    attributes: dict[str, object] = {}
    for name, attribute in found.attributes.items():
        value = None
        if attribute.default_value.type:
            value = onnx.helper.get_attribute_value(attribute.default_value)
        attributes[name] = REQUIRED if attribute.required else default(value)
    return [i.name.rstrip("_") for i in found.inputs], attributes


def default(value: object) -> object:
    """One spelling for a default: text, short floats, lists."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [default(item) for item in value]
    return float(str(np.float32(value))) if isinstance(value, float) else value


@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: f"{rule.domain}.{rule.op_type}-{rule.since}"
)
def test_a_rule_states_its_schema(rule: Rule) -> None:
    if rule.domain in OURS:
        return
    answered = versions(rule)
    newest_opset = onnx.defs.onnx_opset_version()
    if rule.domain == "" and newest_opset < WRITTEN_FOR:
        pytest.skip(f"onnx {onnx.__version__} knows opsets to {newest_opset} only")
    assert answered, "no version of the operator is this rule's"
    inputs, attributes = parameters(rule)
    newest_inputs, newest = schema(rule, answered[0])
    assert inputs == newest_inputs
    assert attributes == newest
    for version in answered[1:]:
        older_inputs, older = schema(rule, version)
        assert inputs[: len(older_inputs)] == older_inputs
        declared = {name: v for name, v in older.items() if v is not REQUIRED}
        assert declared.items() <= attributes.items()
        assert older.keys() <= attributes.keys()


def test_names_are_operators_in_snake_case() -> None:
    """Every operator has a function of its name, older meanings one that starts so.

    One of our own may have the name of the runtime's function, which ends so.
    """
    for (domain, op_type), rules in registry.items():
        if domain not in OURS and domain != "":
            continue
        names = {rule.function.__name__.rstrip("_").replace("_", "") for rule in rules}
        plain = re.sub(r"\W", "", op_type).lower()
        own = domain in OURS and any(name.endswith(plain) for name in names)
        assert own or any(name.startswith(plain) for name in names), (op_type, names)


_NO_FAMILIES = ("rule", "shapes", "unknown")
_ROWS = "burnish.codegen.ops.rule.simple"
"""Where the functions of rules that are rows of a family are made."""


def test_every_family_is_registered() -> None:
    """Each file of the rooms declares rules, and the package imports it."""
    top = Path(burnish.codegen.ops.__file__).parent
    files = [file.relative_to(top).with_suffix("") for file in top.rglob("*.py")]
    families = {
        ".".join(("burnish.codegen.ops", *file.parts))
        for file in files
        if file.name != "__init__" and file.parts[0] not in _NO_FAMILIES
    }
    assert {rule.function.__module__ for rule in RULES} - {_ROWS} == families
