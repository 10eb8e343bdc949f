"""Reads JSON that a model wrote by a JSON Schema: names and words of a fixed set are known however they are spelt.

`Title` is `title`, `commitment_type` is `commitmentType`, `CREATE_ISSUE` and "create issue" are `create_issue`, and
`"true"` is true. What stands for two things, or for none, stays as it is, so that the checks say what is wrong. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TRUTH = {"true": True, "false": False}
_CHOICES = ("anyOf", "oneOf", "allOf")
_DEFINED = "#/$defs/"

Schema = Mapping[str, Any]


def squashed(word: str) -> str:
    """The letters and digits of a word, whatever their case and what stands between them."""
    return "".join(filter(str.isalnum, word.casefold()))


def named(sent: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """`sent` with each field under the one of `names` that it spells; what stands under the name itself wins."""
    known = {squashed(name): name for name in names}
    found = {name: value for name, value in sent.items() if known.get(squashed(name), name) == name}
    for name, value in sent.items():
        found.setdefault(known.get(squashed(name), name), value)
    return found


def brought_home(schema: Schema, sent: Mapping[str, Any]) -> dict[str, Any]:
    """What was sent, with the names and words that `schema`, one of an object, knows."""
    return _object(schema, sent, schema.get("$defs", {}))


def _object(schema: Schema, sent: Mapping[str, Any], defined: Schema) -> dict[str, Any]:
    kinds = schema.get("properties", {})
    return {name: _value(kinds.get(name, {}), value, defined) for name, value in named(sent, kinds).items()}


def _value(schema: Schema, value: Any, defined: Schema) -> Any:  # noqa: ANN401 - any JSON value
    """The value as the schema spells it."""
    kinds = list(_kinds(schema, defined))
    if isinstance(value, Mapping):
        return _object(next((one for one in kinds if "properties" in one), {}), value, defined)
    if isinstance(value, list):
        item: Schema = next((one["items"] for one in kinds if "items" in one), {})
        return [_value(item, one, defined) for one in value]
    if not isinstance(value, str) or any(one.get("type") == "string" and "enum" not in one for one in kinds):
        return value
    if any(one.get("type") == "boolean" for one in kinds) and value.strip().casefold() in _TRUTH:
        return _TRUTH[value.strip().casefold()]
    words = {word for one in kinds for word in (*one.get("enum", ()), one.get("const")) if isinstance(word, str)}
    spelt = [word for word in words if squashed(word) == squashed(value)]
    return spelt[0] if len(spelt) == 1 else value


def _kinds(schema: Schema, defined: Schema) -> Iterator[Schema]:
    """The schemas of which a value may follow one."""
    if str(schema.get("$ref", "")).startswith(_DEFINED):
        yield from _kinds(defined.get(schema["$ref"].removeprefix(_DEFINED), {}), defined)
    choices = [one for name in _CHOICES for one in schema.get(name, ())]
    for one in choices:
        yield from _kinds(one, defined)
    if not choices:
        yield schema
