"""Code for a task: from a table of small programs, file by file, then a run of it, then the end. Pure."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from common.facts import CodingFacts
from town.mind.building import row_for
from town.mind.turn import MindTurn
from town.model.types import Completion


def write_code(turn: MindTurn, about: CodingFacts) -> Completion:
    """The next call for a task: the files of its row that are not written yet, its run, its end."""
    row = row_for(turn.bank, about.title)
    named = {PurePosixPath(path).suffix: path for path in reversed(about.files)}
    row = next((one for one in row.get("instead", ()) if PurePosixPath(one["main"]).suffix in named), row)
    main = named.get(PurePosixPath(row["main"]).suffix, row["main"])
    files = {_filled(path, main, about): _filled(text, main, about) for path, text in row["files"].items()}
    done = turn.facts.outcomes
    written = {outcome.text for outcome in done if outcome.tool == "write_file" and not outcome.failed}
    if turn.last is not None and turn.last.failed:
        return turn.call("blocked", {"reason": "My table of programs ends here."})
    if not done:
        return turn.call("list_files", {})
    if left := next((path for path in files if path not in written), ""):
        return turn.call("write_file", {"path": left, "content": files[left]})
    if done[-1].tool != "run":
        return turn.call("run", {"command": _filled(row["run"], main, about)})
    return turn.call("finish", {"summary": row["done"]})


def _filled(text: str, main: str, about: CodingFacts) -> str:
    return text.replace("{main}", main).replace("{title}", json.dumps(about.title))
