"""Lives that talk, condense and archive, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.sessions_child FOLDER MODEL_URL MODEL_KEY

Loads everything once, then forks a life for each line on stdin (`FIRST SEED DIE_AT_STEP inside|after`; step 0: never).
It prints `born PID`, `finished N` for archives that an earlier life had left, `said N` for each stored message, and
`ended CODE`. A life finishes what was left, then goes on talking, from message FIRST on, until it is killed.
"""

import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from adapters.storage.local import Storage, open_storage
from adapters.storage.objects import media_prefix
from common.clock import SystemClock
from common.provenance import Provenance
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.dialect import Message, PromptBlock, ToolAnswer, ToolCall
from modules.services.sessions.archives import Distiller
from modules.services.sessions.archivist import Archivist
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import Session
from modules.services.skills.skills import Skills
from tests.crash.lives import MortalDatabase, live_on_request, say
from tests.modules.runtime.llm.scripted_model import scripted_gateway

AGENT = "soul.test"
KEYS = ("owner:terminal", "space:garden")

_BUDGET_TOKENS = 150

SKILLS = Skills.load(Path(__file__).parents[2] / "skills")


async def told_first(_: Session) -> tuple[PromptBlock, ...]:
    return (PromptBlock("dynamic", SKILLS.render("memory-extraction", "System Prompt", agent_name="Rowan")),)


class ArchivingDatabase(MortalDatabase):
    """Counts only steps of archiving: a transaction before or after which an archive is intended."""

    def counts(self, connection: sqlite3.Connection) -> bool:
        return connection.execute("SELECT 1 FROM archives WHERE state = 'prepared'").fetchone() is not None


@dataclass(frozen=True, slots=True)
class Room:
    """The conversations of one home, and the archivist."""

    database: Database
    storage: Storage
    sessions: Sessions
    archivist: Archivist


@asynccontextmanager
async def open_room(folder: Path, database: Database, model_url: str, key: str) -> AsyncIterator[Room]:
    clock, redactor = SystemClock(), Redactor()
    storage = open_storage("", root=folder / "store")
    gateway = scripted_gateway(f"{model_url}/v1", clock, api_key=key, model="test-mind")
    sessions = Sessions(database, clock, redactor, len_in_tokens)
    archivist = Archivist(
        sessions=sessions,
        database=database,
        storage=storage,
        distiller=Distiller(
            gateway=gateway,
            system=told_first,
            skills=SKILLS,
            redactor=redactor,
            rng=random.Random(7),
            estimate=len_in_tokens,
        ),
        journal=Journal(database, SilentConsole(), clock, redactor),
        clock=clock,
        agent_id=AGENT,
        forget_media=lambda session_key: storage.delete_all(media_prefix(session_key)),
    )
    try:
        yield Room(database, storage, sessions, archivist)
    finally:
        await gateway.aclose()
        await storage.aclose()
        await database.close()


def len_in_tokens(text: str) -> int:
    return len(text) // 4


def message(number: int) -> Message:
    return Message("user", f"message {number} is counted further in this talk")


def reply(number: int) -> list[Message]:
    """Return the messages of a round: two tool calls, their answers, and a final text."""
    ids = (f"a{number}", f"b{number}")
    return [
        Message("assistant", tuple(ToolCall(each, "look", {"at": number}) for each in ids)),
        Message("user", tuple(ToolAnswer(each, "look", f"counted {number}") for each in ids)),
        Message("assistant", "it is counted"),
    ]


async def live(folder: Path, model_url: str, key: str, first: str, seed: str, *fate: str) -> None:
    rng = random.Random(int(seed))
    database = await ArchivingDatabase.opened(folder / "soul.db", fate)
    async with open_room(folder, database, model_url, key) as room:
        say(f"finished {len(await room.archivist.finish_prepared())}")
        for number in count(int(first)):
            session_key = rng.choice(KEYS)
            session_id = (await room.sessions.open(session_key)).id
            await room.sessions.add(session_id, [(message(number), Provenance.OWNER)])
            say(f"said {number}")
            await room.sessions.add(session_id, [(each, Provenance.OWNER) for each in reply(number)])
            if rng.random() < 0.2:
                await room.archivist.reset(session_key)
            else:
                await room.archivist.compact(session_id, _BUDGET_TOKENS)


def main() -> None:
    folder, model_url, key = sys.argv[1:]
    live_on_request(lambda words: live(Path(folder), model_url, key, *words))


if __name__ == "__main__":
    import openai as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
