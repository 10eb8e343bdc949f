"""Code for a task: from a table of small programs, file by file, then a run of it, then the end. Pure."""

from __future__ import annotations

from common.facts import CodingFacts
from town.mind.building import row_for
from town.mind.turn import MindTurn
from town.model.types import Completion, Json, ToolUse

_UNKNOWN = "this mind knows a few programs by heart, and the task asks for none; a language model could write it"
_UNEXPECTED = "what this mind knows by heart does not fit what is there"
README, _HEADING = "README.md", "# A new page\n"
"""The page on which a task that names it says how to run what was built, and how a new one begins."""
_FOUND = "All of it is there already, and its tests pass."


def write_code(turn: MindTurn, about: CodingFacts) -> Completion:
    """The next call for a task.

    Its files, the README if it names it, its changes once a run failed without them, a run that passes, the end.
    """
    tool, given = _next(turn, about)
    return Completion(calls=(ToolUse(tool, given),))


def _next(turn: MindTurn, about: CodingFacts) -> tuple[str, Json]:
    row, last = row_for(turn.bank, about.title), turn.last
    if row is None:
        return "blocked", {"reason": _UNKNOWN}
    if last is None:
        return "list_files", {}
    changed = {one.text for one in turn.facts.outcomes if one.tool in {"write_file", "edit_file"} and not one.failed}
    files = [{"path": path, "content": text} for path, text in row["files"].items() if path not in changed]
    edits = [{"path": path, **edit} for path, edit in row.get("edits", {}).items() if path not in changed]
    if files and not last.failed:
        return "write_file", files[0]
    if edits and (last.tool, last.failed) in {("run", True), ("edit_file", False)}:
        return "edit_file", edits[0]
    if README in about.files and all(one.text != README for one in turn.facts.outcomes):
        return "edit_file", {"path": README, "old": _HEADING, "new": f"{_HEADING}\n`{row['use']}`: {row['shows']}\n"}
    return _end(turn, row["run"], row["done"], is_found=bool(edits))


def _end(turn: MindTurn, command: str, done: str, *, is_found: bool) -> tuple[str, Json]:
    """The run once all is written, and the end; that nothing was to be done is said where a first end was sent back."""
    ended = [one for one in turn.facts.outcomes if one.tool == "finish"]
    last = turn.facts.outcomes[-1]
    if (last.failed and last.tool != "finish" and last.text != README) or len(ended) > 1:
        return "blocked", {"reason": _UNEXPECTED}
    if ended or (is_found and last.tool == "run"):
        return "finish", {"summary": _FOUND, "already_there": True}
    return ("finish", {"summary": done, "description": done}) if last.tool == "run" else ("run", {"command": command})
