"""Every command that a place lists is answered there."""

from __future__ import annotations

import pytest

from soul.command_table import Place, rows_at
from soul.commands.mcp import HomeTools
from soul.commands.owner_commands import OwnerCommands
from soul.dashboard.facts import PageActs
from soul.room_host.host import HostCommands


@pytest.mark.parametrize(
    ("place", "answers"),
    [
        ("terminal", OwnerCommands),
        ("message", OwnerCommands),
        ("room", HostCommands),
        ("page", PageActs),
        ("mcp", HomeTools),
        ("mcp acts", HomeTools),
    ],
)
def test_every_command_of_a_place_is_answered_there(place: Place, answers: type) -> None:
    names = rows_at(place)
    assert names
    assert [name for name in names if not hasattr(answers, f"run_{name}")] == []
