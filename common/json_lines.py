r"""Lines of JSON: one value a line, and only `\n` ends it.

JSON leaves other line ends (U+2028, U+2029, U+0085 …) unescaped in a string, and `str.splitlines` breaks the line
there. These functions must be used to read and write such lines.
"""

import json
from typing import Any, AnyStr


def split_lines(content: AnyStr) -> list[AnyStr]:
    r"""Return the lines of `content`, each with its `\n`; the last one without, if it has none."""
    if isinstance(content, str):
        return _ended(content.split("\n"), "\n")
    return _ended(content.split(b"\n"), b"\n")


def json_line(value: object) -> bytes:
    """Return `value` as one line, with its line end."""
    # NOTE(self): half a surrogate pair cannot be UTF-8; as an escape it is valid JSON and is read back unchanged.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in `text`, invalid UTF-8 replaced; None for anything else or too deep nesting."""
    try:
        found = json.loads(text.decode(errors="replace") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _ended(parts: list[AnyStr], end: AnyStr) -> list[AnyStr]:
    lines = [line + end for line in parts[:-1]]
    return lines + [torn for torn in parts[-1:] if torn]
