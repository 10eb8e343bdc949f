"""Says which files are documents."""

import re

_PATH_CHARS = 120
_NAME = re.compile(r"[\w-][\w. -]{0,99}")


def is_document(path: str) -> bool:
    """Return whether a path from the root is that of a Markdown document, in no hidden folder, in plain characters."""
    parts = path.split("/")
    return len(path) <= _PATH_CHARS and path.lower().endswith(".md") and all(_NAME.fullmatch(part) for part in parts)
