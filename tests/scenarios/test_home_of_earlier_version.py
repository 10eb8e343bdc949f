"""Proves that the current version runs in a home of an earlier version, and that nothing in it is lost.

The homes are in `tests/fixtures`, each with the town around it; their contents are read by the commands of the owner.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.clock import SystemClock
from modules.runtime.database.file import reading
from soul import cli
from tests import patience
from tests.fixtures.kept_home import FILES, FIXTURES, expected, kept_of, set_up, words_of
from tests.fixtures.kept_town import NAME, done_by_soul, places_of, town_of
from tests.program import started, until
from tests.running_town import RunningTown, call
from tests.scenarios.room_society import Society
from town.model.types import ChatRequest, Completion

HOMES = sorted(path.parent for path in FIXTURES.glob("*/about.json"))
ACQUAINTANCES = ("relationships.json", "peer_relationships.json", "bluesky_conversations.json")
MOSS = "Moss holds the rain against the slate, so brush it off. How thick is yours?"
TOLD = "Written down, with what you saw:"
NOON = "It came at noon."
AGAIN = "Tin sings louder, slate lasts longer. Do you sleep below yours?"


def mind(request: ChatRequest) -> Completion:
    """Answer what waited, and share no thought of its own."""
    names = {offer.name for offer in request.offers}
    said = request.messages[-1].text
    if "bluesky_reply" in names and request.force:
        return call("bluesky_reply", text=MOSS if "moss" in said else AGAIN)
    if "tell_it_is_done" in names:
        return call("tell_it_is_done", sentence=TOLD)
    return Completion(text=NOON if "parcel" in said else "")


@dataclass
class Visit:
    """One home, set up in a town where its SOUL can live."""

    root: Path
    kept: Path
    town: Society
    expected: dict[str, Any]

    async def told(self, *command: str) -> Any:
        """Return what a command prints with `--json`."""
        code, output = await self.asks(*command, "--json")
        assert code == 0, output
        return json.loads(output)

    async def lines(self, *command: str) -> list[Any]:
        """Return the lines of JSON that a command prints."""
        code, output = await self.asks(*command)
        assert code == 0, output
        return [json.loads(line) for line in output.splitlines()]

    async def asks(self, *command: str) -> tuple[int, str]:
        """Return the exit code and the output of a command."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = await asyncio.to_thread(cli.run, [*command, "--home", str(self.root)])
        return code, output.getvalue()

    def file(self, name: str) -> str:
        return (self.root / name).read_text()

    def asked(self) -> str:
        """Return all text that the model was given."""
        requests = self.town.running_town.mind.asked
        return "\n".join(message.text for request in requests for message in request.messages)


async def lives(visit: Visit) -> None:
    """Run the SOUL paused, as the owner left it; then resume it, and check that all that waited is done once."""
    town, before, kept = visit.town, done(visit.town), visit.expected
    async with started("run", "--home", str(visit.root)) as process:
        await until(process, NOON)
        status = await visit.told("status")
        assert status["standing"]["reasons"] == ["paused by the owner: away until Monday"]
        assert [_part(one, kept["promises"]) for one in status["commitments"]] == kept["promises"]
        drafts = [one for one in await visit.told("drafts") if one["state"] == "held"]
        assert [_part(one, kept["drafts"]) for one in drafts] == kept["drafts"]
        ids = [one["id"] for one in drafts]
        assert [one["id"] for one in await visit.told("drafts", "approve", *ids)] == ids
        await ends(process)
    assert done(town) == before
    assert (await visit.asks("resume"))[0] == 0
    open_acts = [(kind, what) for kind, what in kept["open"]]
    approved = [(one["kind"], one["text"]) for one in kept["drafts"]]
    both_kept = [("reply", TOLD)] * 2  # an issue and a comment, which one reply promised
    wanted = before + Counter([*open_acts, *approved, ("reply", MOSS), *both_kept])
    async with started("run", "--home", str(visit.root)) as process:
        await reached(town, wanted)
        town.running_town.network.post_as(town.running_town.account("owner"), "@rowan.test tin or slate?")
        await reached(town, wanted + Counter([("reply", AGAIN)]))
        await ends(process)
    assert done(town) == wanted + Counter([("reply", AGAIN)])
    plans = [one for one in kept["promises"] if one["type"] == "create_plan"]
    queued_commitments = [_part(one, kept["promises"]) for one in (await visit.told("status"))["commitments"]]
    assert [one for one in plans if one not in queued_commitments] == []


async def reached(town: Society, wanted: Counter[tuple[str, str]]) -> None:
    """Wait until the SOUL has done all that is wanted; check that it did nothing else."""
    with contextlib.suppress(AssertionError):
        await patience.until(lambda: not wanted - done(town))
    assert done(town) == wanted


def done(town: Society) -> Counter[tuple[str, str]]:
    """Return what the SOUL has done so far; news of a kept commitment stands without its link."""
    return Counter((kind, TOLD if what.startswith(TOLD) else what) for kind, what in done_by_soul(town))


async def ends(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGINT)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


async def holds_all(visit: Visit) -> None:
    """Check that every memory, talk, version of SELF.md and story is there with its id, date and words."""
    kept = visit.expected
    remembered = (await visit.lines("memory", "export"))[1:]
    assert [
        one for one in map(_lasting, kept["memory"]) if not any(one.items() <= now.items() for now in remembered)
    ] == []
    for session, words in kept["talks"].items():
        said = words_of(await visit.told("talks", "show", session))
        assert said[: len(words)] == words
    for what, story in kept["why"].items():
        now = kept_of(await visit.told("why", what))
        assert now["asked"] == story["asked"]
        assert now["acts"].keys() >= story["acts"].keys()
        assert [words for act, words in story["acts"].items() if words not in now["acts"][act]] == []
        assert Counter(now["steps"]) >= Counter(story["steps"])
    versions = await visit.told("self", "log")
    assert [_part(one, kept["self"]) for one in versions] == kept["self"]
    assert (await visit.told("drafts", "show", "SELF.md"))["content"] == kept["selfHeld"]
    calls, tokens = await spent(visit)
    assert calls >= sum(day["calls"] for day in kept["budgetDays"]) + len(visit.town.running_town.mind.asked)
    assert tokens > sum(day["tokens"] for day in kept["budgetDays"])
    for name in ("SOUL.md", "SELF.md", "workspace/USER.md", "workspace/GOALS.md", "workspace/MEMORY.md"):
        assert visit.file(name) == (visit.kept / FILES / name).read_text(), name
    for name in ACQUAINTANCES:
        (state,) = (visit.root / ".memory").rglob(name)
        before = json.loads((visit.kept / FILES / "dot-memory" / name).read_text())
        before.pop("reflection", None)  # its insights go into the next reflection
        assert addresses(before) <= addresses(json.loads(state.read_text())), name
    assert json.loads(visit.file(".memory/space-config.json"))["checkIntervalMs"] == 4000


async def spent(visit: Visit) -> tuple[int, int]:
    """Return the number of model calls that the owner is shown, and their tokens."""
    days = (await visit.told("budget"))["days"]
    return sum(day["calls"] for day in days), sum(day["tokens"] for day in days)


def addresses(state: object, *path: str) -> set[tuple[str, ...]]:
    """Return every uri, DID and name of a person in a state file, each with its path in the file."""
    if isinstance(state, dict):
        return {found for name, value in state.items() for found in addresses(value, *path, name)}
    if isinstance(state, list):
        return {found for value in state for found in addresses(value, *path)}
    named = isinstance(state, str) and (state.startswith(("at://", "did:")) or path[-1] in {"handle", "peerName"})
    return {(*path, str(state))} if named else set()


def _part(now: dict[str, Any], kept: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fields of `now` that the kept entries have."""
    return {name: now[name] for name in kept[0]}


def _lasting(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of an export without the fields that change with each recall."""
    return {name: value for name, value in line.items() if not name.startswith(("recall", "last_recalled"))}


@pytest.mark.slow
async def test_a_start_that_upgrades_first_keeps_one_copy_of_the_home_and_the_next_starts_at_once(
    running_town: RunningTown,
) -> None:
    now = SystemClock().now()
    async with town_of(HOMES[0], running_town, now) as town:
        town.otherwise = mind
        root = running_town.root / NAME
        set_up(HOMES[0], root, places_of(town), now=now)
        for _ in range(2):
            async with started("run", "--upgrade", "--home", str(root)) as process:
                await until(process, "Awake")
                await ends(process)
            assert len([*root.glob("before-*.soul")]) == 1


@pytest.mark.smoke
@pytest.mark.parametrize("kept", HOMES, ids=[path.name for path in HOMES])
async def test_a_home_of_an_earlier_version_is_lived_in_on_and_nothing_is_lost(
    running_town: RunningTown, kept: Path
) -> None:
    now = SystemClock().now()
    async with town_of(kept, running_town, now) as town:
        town.otherwise = mind
        places, root = places_of(town), running_town.root / NAME
        set_up(kept, root, places, now=now)
        visit = Visit(root, kept, town, expected(kept, places, now=now))
        await lives(visit)
        assert "Good morning, Rowan." in visit.asked()
        await holds_all(visit)
        with reading(root / ".memory" / "soul.db") as connection:
            keys = {row["key"] for row in connection.execute("SELECT key FROM sessions WHERE key LIKE 'space:%'")}
        assert keys == {"space:agent-space"}
