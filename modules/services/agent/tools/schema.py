"""Makes a pydantic model's JSON Schema plain enough for the grammars of small models. Pure.

Some servers turn the schema into a grammar, and fail, or drop it silently, on references, unions and clever patterns.
Only what they all understand is sent; the executor validates the rest.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = ("type", "description", "enum", "const", "required", "minimum", "maximum", "minItems", "maxItems")


def simple_schema(model: type[BaseModel]) -> Schema:
    """JSON Schema of an object, without titles, references, patterns or lengths, and with as few unions as can be.

    The model's own docstring stays at home: it speaks to us. Field descriptions go along.
    """
    schema = model.model_json_schema()
    plain = _plain(schema, schema.get("$defs", {}))
    plain.pop("description", None)
    return {"properties": {}, **plain}


def _plain(schema: Schema, defs: dict[str, Schema]) -> Schema:
    if "$ref" in schema:
        target = defs[schema["$ref"].rsplit("/", 1)[-1]]
        return _plain(target | {key: value for key, value in schema.items() if key != "$ref"}, defs)
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
