"""The story of one post, one act, or one silence, told from the journal.

Only reads the database, so it can be asked whether the SOUL runs or not. Nothing is looked up on the network.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from typing import Any

from common.errors import SoulError
from modules.runtime.database.database import Database
from modules.services.explanation.rendering import ending, lines, steps, title
from modules.services.explanation.story import Story, Unknown, find, gather

__all__ = ["Story", "as_json", "ending", "lines", "steps", "story_of", "tell", "title"]


def story_of(connection: sqlite3.Connection, what: str) -> Story:
    """Return the story of `what`: a link to a post or thread, an `at://` uri, a task, or an act's id or its prefix.

    Raises `SoulError` if there is none.
    """
    found = find(connection, what)
    story = found if isinstance(found, Unknown) else gather(connection, found)
    if isinstance(story, Unknown):
        raise SoulError(story.reason)
    return story


def as_json(story: Story) -> dict[str, Any]:
    """Return the story for programs: the fields of `Story`, with its title."""
    return {"title": title(story), **dataclasses.asdict(story)}


async def tell(database: Database, what: str, timezone: str = "") -> list[str]:
    """Return the lines of the story for the owner's terminal. Raises as `story_of`."""
    return lines(await database.run(lambda connection: story_of(connection, what)), timezone)
