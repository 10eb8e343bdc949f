"""Lives of a real outbox in front of a real service, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.crash_child FOLDER SERVICE_URL HANDLE PASSWORD

Loads everything once, then forks a life for each line on stdin (`DIE_AT_TRANSACTION inside|after`, or nothing). It
prints `born PID`, `awake` and `ended CODE`. A life submits every act of `FOLDER/wanted.jsonl` that has no intent yet,
delivers until nothing waits, and ends with code 0. If `FOLDER/hasty` exists, it does not wait for a time, but sets the
clock ahead.
"""

import json
import sys
from pathlib import Path

from adapters.atproto.client import Atproto
from common.redact import Redactor
from common.result import Err
from modules.runtime.console import SilentConsole
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import IntentKind, OpaqueBody, read_body
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import BlueskySender, DirectMessageSender
from modules.services.outbox.types import Pacing, ProposedAction
from tests.crash.lives import MortalDatabase, live_on_request, say
from tests.hasty_clock import HastyClock
from tests.loopback import to_loopback
from tests.modules.services.pictures.sharing import pictures_in

_KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "delete")

_READ_TIMEOUT_S = 1.0


async def live(folder: Path, service_url: str, handle: str, password: str, fate: list[str]) -> None:
    clock, is_hasty = HastyClock(), (folder / "hasty").exists()
    clock.haste = 1
    database = await MortalDatabase.opened(folder / "soul.db", fate)
    atproto = Atproto(
        transport=to_loopback,
        service_url=service_url,
        identifier=handle,
        password=password,
        session_path=folder / "session.json",
        clock=clock,
        min_spacing_s=0,
        read_timeout_s=_READ_TIMEOUT_S,
    )
    journal = Journal(database, SilentConsole(), clock, Redactor())
    to_bluesky = BlueskySender(atproto, pictures_in(folder, clock, database, journal))
    by_message = DirectMessageSender(atproto, database, journal, owner_did="")
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders={**dict.fromkeys(_KINDS, to_bluesky), "direct_message": by_message},
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        own_did=lambda: atproto.did,
    )
    while isinstance(await atproto.authenticate(), Err):
        await clock.sleep(0.1)
    say("awake")
    for line in (folder / "wanted.jsonl").read_text().splitlines():
        wanted = json.loads(line)
        body = read_body(wanted["kind"], wanted["body"])
        assert not isinstance(body, OpaqueBody)
        draft = ProposedAction(body, cause_id=wanted["cause_id"], hold=wanted["hold"])
        if not await outbox.by_cause(draft.cause_id or ""):
            await outbox.submit(draft)
    while (report := await outbox.deliver_due()).next_in_s is not None:
        clock.ahead += report.next_in_s if is_hasty else 0
        await clock.sleep(min(report.next_in_s, 0.01 if is_hasty else 0.1))
    await atproto.aclose()
    await database.close()


def main() -> None:
    folder, service_url, handle, password = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), service_url, handle, password, fate))


if __name__ == "__main__":
    from adapters.atproto import xrpc as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
