"""Simplifies a pydantic model's JSON Schema for the grammars of small models. Pure.

Some servers turn the schema into a grammar, and fail on references, unions and complex patterns or drop it silently.
Only what they all understand is sent; the executor validates the rest.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from common.errors import SkillError

Schema = dict[str, Any]

_KEPT = ("type", "description", "enum", "const", "required", "minimum", "maximum", "minItems", "maxItems")


_FIELD = re.compile(r"^- (\w+): +(\S.*)$", re.MULTILINE)
_NO_FIELDS: Mapping[str, str] = {}


def read_description(text: str) -> tuple[str, dict[str, str]]:
    """Return a tool's description and the descriptions of its fields, from its section of a skill.

    A line `- name: description` describes a field; all other lines describe the tool.
    """
    return _FIELD.sub("", text).strip(), {found[1]: found[2].strip() for found in _FIELD.finditer(text)}


def simple_schema(
    model: type[BaseModel], fields: Mapping[str, str] = _NO_FIELDS, *, without: Collection[str] = ()
) -> Schema:
    """Return the JSON Schema of an object without titles, references, patterns and lengths, and with few unions.

    Args:
        model: the input model. Its docstring and those of its parts are left out.
        fields: descriptions by the name of the property.
        without: properties that are left out; none of them is required.

    Raises:
        SkillError: `fields` describes a property that `model` does not have.

    """
    schema = _schema_of(model)
    properties = schema.get("properties", {})
    if unknown := sorted(fields.keys() - properties.keys()):
        raise SkillError(
            f"Skills: {model.__name__} has no field {', '.join(unknown)}", remedy="Correct the tool's description."
        )
    described = {name: properties[name] | {"description": text} for name, text in fields.items()}
    shown = {name: part for name, part in (properties | described).items() if name not in without}
    plain = _plain(schema | {"properties": shown}, schema.get("$defs", {}))
    plain.pop("description", None)
    return {"properties": {}, **plain}


@cache
def _schema_of(model: type[BaseModel]) -> Schema:
    """Return the schema of pydantic; cached, as it is slow to make. Do not change it."""
    return model.model_json_schema()


def _plain(schema: Schema, defs: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        target = defs[schema["$ref"].rsplit("/", 1)[-1]]
        # NOTE(self): the description of a part of an input is a docstring; texts for a model are in skills.
        told = {key: value for key, value in target.items() if key != "description"}
        return _plain(told | {key: value for key, value in schema.items() if key != "$ref"}, defs)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            return _union(schema, [part for part in schema[word] if part.get("type") != "null"], defs)
    plain = {key: schema[key] for key in _KEPT if key in schema}
    if "properties" in schema:
        plain["properties"] = {name: _plain(part, defs) for name, part in schema["properties"].items()}
    if "items" in schema:
        plain["items"] = _plain(schema["items"], defs)
    return plain


def _union(schema: Schema, parts: list[Schema], defs: dict[str, Schema]) -> Schema:
    if len(parts) == 1:
        own = {key: schema[key] for key in ("description",) if key in schema}
        return _plain(parts[0], defs) | own
    description = {"description": schema["description"]} if "description" in schema else {}
    return {"anyOf": [_plain(part, defs) for part in parts], **description}
