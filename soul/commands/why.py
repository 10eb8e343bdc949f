"""`soul why`: the story of one post, one act or one silence, whether the SOUL runs or not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from common.errors import SoulError
from common.settings import load_settings
from modules.database import reading
from modules.home import Home
from modules.journal import why


def run_why(root: Path, what: str, *, as_json: bool) -> None:
    """Print it. Raises `SoulError`, in one line, when there is no such story."""
    settings = load_settings(root)
    with reading(Home.at(root, settings.memory_dir).database) as connection:
        story = why.story_of(connection, what)
    if isinstance(story, why.Unknown):
        raise SoulError(story.reason)
    if as_json:
        sys.stdout.write(json.dumps(why.as_json(story), ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(why.lines(story, settings.soul_timezone)) + "\n")
