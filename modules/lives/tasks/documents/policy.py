"""Decides which tasks ask for documents. Pure."""

from __future__ import annotations

import re

from modules.services.plans.types import AGENTS_PAGE, SCENARIOS_PAGE, Task

MOST_DOCUMENTS = 3
"""How many documents one task may ask for."""

_PATH_CHARS = 120
_NAME = re.compile(r"[\w-][\w. -]{0,99}")


def is_document_task(task: Task) -> bool:
    """Return whether a task names only Markdown documents, at least one and at most `MOST_DOCUMENTS`."""
    return 0 < len(task.files) <= MOST_DOCUMENTS and all(map(is_document, task.files))


def is_page(path: str) -> bool:
    """Return whether a path is that of a workspace page, which is rewritten if it exists already."""
    return path.rpartition("/")[2].lower() in {AGENTS_PAGE.lower(), SCENARIOS_PAGE.lower()}


def is_document(path: str) -> bool:
    """Return whether a path from the root is that of a Markdown document, in no hidden folder, in plain characters."""
    parts = path.split("/")
    return len(path) <= _PATH_CHARS and path.lower().endswith(".md") and all(_NAME.fullmatch(part) for part in parts)
