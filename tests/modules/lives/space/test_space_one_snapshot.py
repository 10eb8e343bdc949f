"""A check of the room rests on values: nobody changes a case or a snapshot, and few places look at the room anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from modules.lives.space.config import SpaceConfig
from modules.lives.space.policy import role_budget
from modules.lives.space.request_parser import parse_request
from modules.lives.space.respond import Case
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.state import MessagesArrived
from modules.lives.space.types import Asked, PeerEvent
from tests.modules.lives.space.soul_in_room import Room, declines

LIFE = Path(__file__).resolve().parents[4] / "modules" / "lives" / "space"
VALUES = {"case", "snapshot"}
LOOKS = {
    ("act.py", "_check"),  # where a check begins
    ("act.py", "_looked_again"),  # after the model answered
    ("speak.py", "say"),  # right before something is said
}
"""Where a snapshot is built: file and function."""


def assigned_in(tree: ast.AST) -> Iterator[str]:
    """Each assignment to an attribute of a case or a snapshot, as source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name in VALUES:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "object.__setattr__"}:
            yield ast.unparse(node)


def callers_in(tree: ast.AST, name: str) -> Iterator[str]:
    """The functions that call a method `name`, once for each call."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                    yield function.name


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(LIFE.glob("*.py")):
        yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def test_nobody_assigns_into_a_case_or_a_snapshot() -> None:
    assert [f"{name}: {found}" for name, tree in trees() for found in assigned_in(tree)] == []


def test_the_rule_sees_each_form_of_assignment() -> None:
    for line in (
        "case.snapshot = 1",
        "self.case.notes += (1,)",
        "waiting.snapshot.request = 1",
        "del snapshot.repo",
        "a, case.config = 1, 2",
        "setattr(case, 'config', 1)",
        "object.__setattr__(snapshot, 'repo', '')",
    ):
        assert list(assigned_in(ast.parse(line))), line
    assert not list(assigned_in(ast.parse("case = replace(case, snapshot=snapshot)")))


def test_a_case_and_its_snapshot_do_not_change() -> None:
    case = Case(RoomSnapshot(datetime(2026, 3, 2, tzinfo=UTC), "nova"), SpaceConfig())
    for value in (case, case.snapshot):
        for one in fields(value):
            with pytest.raises(FrozenInstanceError):
                setattr(value, one.name, None)


def test_a_snapshot_is_built_at_the_start_after_the_model_and_before_something_is_said() -> None:
    found = [(name, caller) for name, tree in trees() for caller in callers_in(tree, "build_snapshot")]
    assert sorted(found) == sorted(LOOKS)


async def test_a_snapshot_holds_what_the_request_asks_for_and_how_the_talk_reads(room: Room) -> None:
    request = 'Please post on Bluesky: "The clock runs again"'
    async with room.soul("marvin", lambda _: declines()) as marvin:
        await room.says(request, marvin)
        await marvin.check()
        life = marvin.space.participation
        snapshot = life.snapshots.build_snapshot(())
        claim = PeerEvent("claim", "rebecca", snapshot.now + timedelta(seconds=1), "post_bluesky", "#The clock")
        life.talk.handle(MessagesArrived((), snapshot.now, (claim,)))
        life.snapshots.advance()
        assert life.snapshots.build_snapshot(()).is_claimed
    assert snapshot.request.content == request
    assert snapshot.asked == parse_request(request) == Asked("post_bluesky", "The clock runs again")
    assert snapshot.is_open
    assert not snapshot.is_claimed
    assert snapshot.budget == role_budget(snapshot.role, snapshot.mode) > 0
    assert [line.partition("] ")[2] for line in snapshot.lines] == [f"host: {request}"]
    assert snapshot.latest_lines == "\n".join(snapshot.lines)
