"""Which tasks ask for documents. Pure."""

from __future__ import annotations

import re

from modules.services.plans.types import AGENTS_PAGE, SCENARIOS_PAGE, Task

MOST_DOCUMENTS = 3
"""So many documents one task may ask for."""

_PATH_CHARS = 120
_NAME = re.compile(r"[\w-][\w. -]{0,99}")


def is_document_task(task: Task) -> bool:
    """Return whether a task changes Markdown documents and nothing else, a few of them."""
    return 0 < len(task.files) <= MOST_DOCUMENTS and all(map(is_document, task.files))


def is_page(path: str) -> bool:
    """Return whether a path is that of a page of a workspace, which is written anew where it stands already."""
    return path.rpartition("/")[2].lower() in {AGENTS_PAGE.lower(), SCENARIOS_PAGE.lower()}


def is_document(path: str) -> bool:
    """Return whether a path is that of a Markdown document: from the root, in no hidden folder, in plain characters."""
    parts = path.split("/")
    return len(path) <= _PATH_CHARS and path.lower().endswith(".md") and all(_NAME.fullmatch(part) for part in parts)
