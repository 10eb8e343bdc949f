"""40 changes go through a review: real Git, a real sandbox, GitHub over HTTP, and a model scripted by each row.

Each fault must reach the model: its line appears uncut and with its number. What code can detect is not approved even
if the model approves. Comments of the model on a line reach the author with their place.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from modules.services.plans.plan_text import generate_plan_markdown
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.running_town import RunningTown, awake, call
from tests.scenarios.code_review import BRANCH, PLAN, SITE, Reviewed, code, open_reviewed, review
from tests.scenarios.github_talk import CLOCK
from tests.scenarios.review_diffs import BASE, CLEAN, FAULTS, Content, Diff, Planted
from tests.town.github_place import needs_git

pytestmark = [needs_git, needs_sandbox, pytest.mark.slow]

WORDS = "What is this for?"
HUNK_CHARS = 1_000
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COMMIT = b"commit refs/heads/%s\ncommitter Kit <kit@example.com> 1 +0000\ndata 4\nWork\n%sdeleteall\n"


def contents(diff: Diff) -> tuple[dict[str, Content], dict[str, Content]]:
    """Return the files of the project before a change and after it."""
    before: dict[str, Content] = {**BASE, **diff.before}
    after = {**before, **diff.files}
    for path, old, new in diff.edits:
        text = after[path]
        assert isinstance(text, str)
        assert text.count(old) == 1
        after[path] = text.replace(old, new)
    return before, after


def commit(branch: str, start: str, files: Mapping[str, Content], modes: Mapping[str, str]) -> bytes:
    """Return the commands that let `git fast-import` commit these files, and no other."""
    lines = [_COMMIT % (branch.encode(), f"from {start}\n".encode())]
    for path, content in files.items():
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            lines.append(f"M {modes.get(path, '100644')} inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    return b"".join(lines)


async def offer(place: Reviewed, diff: Diff) -> None:
    """Open the pull request of a change, as that of a task of `kit`, and ask `rowan` for a review."""
    before, after = contents(diff)
    folder: Path = place.place.network.git(place.place.repo).folder
    given = commit("main", "refs/heads/main^0", before, {}) + commit(BRANCH, "refs/heads/main", after, diff.modes)
    command = ["git", "fast-import", "--quiet"]
    await asyncio.to_thread(subprocess.run, command, cwd=folder, input=given, check=True)
    plan = await place.owner.create_issue(SITE, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN), labels=("plan",))
    body = f"Part of #{ok(plan).number}, as planned."
    place.number = ok(await place.kit.pulls.create(SITE, title="More beds", body=body, head=BRANCH, base="main")).number
    await place.ask()


def line_of(diff: Diff, planted: Planted) -> tuple[int, str]:
    """Return the number and the text of the one line in which a fault was planted."""
    files = contents(diff)[planted.sign == "+"]
    content = files[planted.path]
    text = content.decode(diff.encoding) if isinstance(content, bytes) else content or ""
    ((number, line),) = [(at, one) for at, one in enumerate(text.split("\n"), 1) if planted.text in one]
    return number, planted.shown or line


def shown_lines(message: str, path: str) -> tuple[str, dict[int, str], list[str]]:
    """Return what a message shows of a file's changes: its headline, its new lines by number, and its removed lines."""
    headline, new, gone, number, is_here = "", dict[int, str](), list[str](), 0, False
    for line in message.split("\n"):
        if re.fullmatch(r"\S.* \((?:added|modified|removed|renamed|changed type).*, \+\d+ -\d+\)", line):
            is_here, number = line.startswith(f"{path} ("), 0
            headline = line if is_here else headline
        elif is_here and (head := _HUNK.match(line)):
            number = int(head[1])
        elif is_here and line.startswith("-"):
            gone.append(line[1:])
        elif is_here and number and line.startswith(("+", " ")):
            new[number] = line[1:]
            number += 1
    return headline, new, gone


def arrives(place: Reviewed, diff: Diff, planted: Planted) -> bool:
    """Return whether the model read a planted line unchanged, in the changes or from a tool."""
    headline, new, gone = shown_lines(place.asked[0].messages[-1].text, planted.path)
    if planted.sign == "note":
        return planted.text in headline
    number, line = line_of(diff, planted)
    if planted.sign == "-":
        return line in gone
    answers = [one.messages[-1].text for one in place.asked[1:]]
    return new.get(number) == line or any(f"{number}\t{line}" in answer.split("\n") for answer in answers)


def test_there_are_thirty_faults_and_ten_changes_without_one_under_names_of_their_own() -> None:
    assert (len(FAULTS), len(CLEAN)) == (30, 10)
    assert len({one.name for one in (*FAULTS, *CLEAN)}) == len(FAULTS) + len(CLEAN)


@pytest.mark.parametrize("diff", FAULTS, ids=lambda diff: diff.name)
async def test_a_fault_is_read_by_the_reviewer_is_not_approved_and_reaches_the_author(
    running_town: RunningTown, diff: Diff
) -> None:
    lines = [(one.path, line_of(diff, one)[0]) for one in diff.planted if one.sign == "+"]
    async with open_reviewed(running_town) as place:
        comments = [{"path": path, "line": line, "body": WORDS} for path, line in lines]
        looks = [call(name, **given) for name, given in diff.looks]
        place.judges(diff.asked, call("blocked", reason="I only read it."), comments=comments, looks=looks)
        await offer(place, diff)
        async with awake(place.home(), clock=CLOCK) as rowan:
            await review(rowan)
        unread = [one for one in diff.planted if not arrives(place, diff, one)]
        assert not unread, place.asked[0].messages[-1].text[-3_000:]
        assert place.verdicts == [("rowan", diff.verdict)]
        assert place.pull.reviews[0].commit == place.pull.head
        posted = [(one.path, one.line) for one in place.pull.line_comments]
        named = [f"`{path}:{line}`: {WORDS}" in place.pull.reviews[0].body for path, line in lines]
        assert [one for one, is_named in zip(lines, named, strict=True) if not is_named] == posted
        if diff.verdict != "CHANGES_REQUESTED":
            return
        async with awake(place.home("kit"), clock=CLOCK) as kit:
            await code(kit)
        told = place.coded[0].messages[-1].text
        for planted in diff.planted:
            if planted.sign != "+" or (planted.path, line_of(diff, planted)[0]) not in posted:
                continue
            number, line = line_of(diff, planted)
            hunk = told.split(f"{planted.path}:{number}\n")[1].partition(f"\n{WORDS}")[0]
            seen = line.encode(diff.encoding).decode(errors="replace")
            assert hunk.split("\n")[-1].removesuffix(" […]") == f"+{seen}"[:HUNK_CHARS]


@pytest.mark.parametrize("diff", CLEAN, ids=lambda diff: diff.name)
async def test_a_change_without_a_fault_is_approved_where_the_model_approves(
    running_town: RunningTown, diff: Diff
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as rowan:
        place.judges(diff.asked)
        await offer(place, diff)
        await review(rowan)
        assert place.verdicts == [("rowan", diff.verdict)], place.pull.reviews[0].body
