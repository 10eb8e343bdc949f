"""Proves that a start survives whatever became of the files of a home, and that nothing in them is lost in silence.

`STATE_FILES` says how many broken homes are started (300 in `make test-security`); each has a seed of its own,
counted from `STATE_FILES_FIRST`.
"""

import asyncio
import json
import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.errors import SoulError
from modules.runtime.home import Home
from modules.services.commitments.naming import CommitmentRequest, read_params
from modules.services.commitments.policy import RepoCooldown
from modules.services.commitments.queue import Cooldowns
from modules.services.identity.entries import HeldEdit
from modules.services.identity.history import SelfHistory
from tests.patience import HANG_S
from tests.running_town import RunningTown, awake, replying
from tests.security.state_corruptions import CORRUPTIONS, Corrupt, copy_of

COUNT = int(os.environ.get("STATE_FILES", "12"))
FIRST = int(os.environ.get("STATE_FILES_FIRST", "0"))

_VIEWS = {
    "status.json", "boot-context.md", "boot-context.public.md", ".memory.lock", "starts.json", "MEMORY.md",
    "pending_commitments.jsonl", "pending_commitments.jsonl.version"}  # fmt: skip
"""Files that are rendered from the record at every start or stop, or that tell only of the process."""

_NOTHING = {b"", b"{}", b"[]", b"null"}

_DERIVED = {".lock", ".env", "SOUL.md"}
"""Files that the program does not read as state, or that are empty."""


@dataclass(frozen=True)
class Broken:
    """One file of a home, and how it is corrupted."""

    seed: int
    name: str
    corrupt: Corrupt

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.name} {self.corrupt.__name__}"


async def live_a_while(running_town: RunningTown) -> Home:
    """Run a SOUL until its home has every kind of state file; return the home."""
    running_town.mind.answer = replying("Slate, for its voice in the rain.")
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder, tin or slate?")
        await life.look()
        queue, now = life.app.lives.queue, life.app.services.clock.now()
        wanted = CommitmentRequest(
            "Write down the roofs", "at://kit/1", "I will.", read_params("create_issue", {"title": "Roofs"}), "bluesky"
        )
        assert (await queue.enqueue_commitment(wanted)).new
        Cooldowns(home.memory).add([RepoCooldown("kit", "roofs", "2027-01-01T00:00:00.000Z", "busy")], now)
        life.app.lives.space.relationships.record_space_interaction(["maren"])
        with SelfHistory(home).alone() as history:
            history.hold(HeldEdit("# Rowan\n", "a thought", (), "2026-01-05T12:00:00.000Z", "a stranger was there"))
        ended = asyncio.Event()
        ended.set()
        await life.app.run(ended)
    return home


def state_files(home: Home) -> list[str]:
    """Return every file that a start may read, but for those that only the owner writes."""
    files = (path for path in home.root.rglob("*") if path.is_file() and path.name not in _DERIVED)
    return sorted(str(path.relative_to(home.root)) for path in files)


def chosen(home: Home) -> list[Broken]:
    """Return as many corruptions as asked for: of each file in turn, chosen by their seeds."""
    names = [name for name in state_files(home) if "/logs/" not in name]
    broken = []
    for seed in range(FIRST, FIRST + COUNT):
        rng = random.Random(seed)
        broken.append(Broken(seed, names[seed % len(names)], rng.choice(CORRUPTIONS)))
    return broken


def test_every_kind_of_state_file_is_among_them(home_of_a_life: Home) -> None:
    names = {Path(name).name for name in state_files(home_of_a_life)}
    assert names >= {
        "atproto_session.json", "bluesky_conversations.json", "bootstrap-hashes.json", "expression_schedule.json",
        "llm-usage.jsonl", "pending_commitments.jsonl", "pending_commitments.jsonl.version", "relationships.json",
        "repo_cooldown.json", "self-held.json", "soul.db", "space-config.json", "starts.json", "status.json",
        "SELF.md", "boot-context.md",
    }  # fmt: skip


@pytest.fixture
async def home_of_a_life(running_town: RunningTown) -> Home:
    return await live_a_while(running_town)


@pytest.mark.timeout(3000)
@pytest.mark.slow
async def test_no_broken_state_file_ends_in_a_traceback_or_a_hang_or_is_lost_in_silence(
    running_town: RunningTown, home_of_a_life: Home, tmp_path: Path
) -> None:
    failed = []
    for broken in chosen(home_of_a_life):
        root = copy_of(home_of_a_life.root, tmp_path / f"broken-{broken.seed}")
        broken.corrupt(root / broken.name, random.Random(broken.seed))
        before = _content(root / broken.name)
        problem = await _start(Home.at(root))
        if not problem and not _is_kept(root, broken.name, before, _content(home_of_a_life.root / broken.name)):
            problem = "what it held is nowhere any more"
        if problem:
            print(f"{broken}: {problem}")  # noqa: T201 - what a long run has found so far
            failed.append(f"{broken}: {problem}")
        else:
            await asyncio.to_thread(_remove, root)
    assert failed == [], "\n".join(failed)


async def _start(home: Home) -> str:
    """Start the SOUL; return what went wrong, or "" if it started or was refused in one clear line."""
    try:
        async with asyncio.timeout(HANG_S), awake(home) as life:
            await life.app.lives.bluesky.expression.express()
            ended = asyncio.Event()
            ended.set()
            await life.app.run(ended)
    except SoulError as error:
        return "" if str(error) and "\n" not in str(error) else f"no clear line: {error!r}"
    except TimeoutError:
        return "it hangs"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _is_kept(root: Path, name: str, before: bytes, whole: bytes) -> bool:
    """Return whether the bytes are still in the file or beside it, or need not be kept."""
    path = root / name
    if path.name == "atproto_session.json" and _is_of_another_account(before, whole):
        return True
    if path.name in _VIEWS or before.strip(b"\0 \n") in _NOTHING:
        return True
    if path.name.startswith("soul.db"):
        return any(path.parent.glob("soul.db*"))
    if path.name == "expression_schedule.json" and _is_a_plan(before):
        return True
    if path.name == "relationships.json" and _holds_what_lasts(_content(path), before):
        return True
    beside = (one for one in path.parent.rglob("*") if one.is_file())
    return any(before in one.read_bytes() for one in beside)


def _holds_what_lasts(content: bytes, before: bytes) -> bool:
    """Return whether a relationships file, which a post changes, still has all other values as they were."""
    try:
        values, known = (json.loads(text) for text in (content, before))
        return all(values.get(name) == known[name] for name in known.keys() - {"seenAt", "lastUpdated", "reflection"})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _is_of_another_account(content: bytes, ours: bytes) -> bool:
    """Return whether a session readably names another account, so that the next login takes its place."""
    try:
        values, own = json.loads(content), json.loads(ours)
        names = [(values[key], own[key]) for key in ("service", "identifier")]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    return all(isinstance(value, str) for value, _ in names) and any(value != mine for value, mine in names)


def _is_a_plan(content: bytes) -> bool:
    """Return whether a plan still holds what a plan may hold: the program goes on with it and writes its next one."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(values, dict) and all(
        value is None or isinstance(value, str) or (isinstance(value, list) and all(isinstance(x, str) for x in value))
        for value in values.values()
    )


def _remove(root: Path) -> None:
    shutil.rmtree(root)


_SET_ASIDE = (
    "atproto_session.json", "bluesky_conversations.json", "bootstrap-hashes.json", "expression_schedule.json",
    "relationships.json", "repo_cooldown.json", "self-held.json", "starts.json", "token-ratios.json",
)  # fmt: skip


@pytest.mark.slow
async def test_each_file_that_is_set_aside_is_kept_and_told_to_the_owner_in_one_line(
    running_town: RunningTown, home_of_a_life: Home
) -> None:
    paths = {name: next(home_of_a_life.root.rglob(name), home_of_a_life.memory / name) for name in _SET_ASIDE}
    broken = b"[" * 2_000_000
    for path in paths.values():
        path.write_bytes(broken)
    async with awake(home_of_a_life) as life:
        recorded = [stored.entry.summary for stored in await life.app.services.journal.recent(100, kinds=["error"])]
        shown = [message for _, message, _ in life.console.lines]
    for name, path in paths.items():
        (aside,) = path.parent.glob(f"{name}.corrupt-*")
        assert aside.read_bytes() == broken
        for told in (recorded, shown):
            (line,) = (line for line in told if aside.name in line)
            assert "\n" not in line
