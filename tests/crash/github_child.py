"""Lives of a real outbox in front of GitHub, each in its own process, which tests kill at any moment.

Usage: python -m tests.crash.github_child FOLDER GITHUB_URL LOGIN TOKEN

Loads everything once, then forks a life for each line on stdin, as `crash_child` does. A life submits every act of
`FOLDER/wanted.jsonl` that has no intent yet, delivers until nothing waits, and ends with code 0. It does not wait for
a time, but sets the clock ahead.
"""

import json
import sys
from pathlib import Path

from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import OpaqueBody, read_body
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.types import Pacing, ProposedAction
from tests.crash.lives import MortalDatabase, github_at, live_on_request, say
from tests.hasty_clock import HastyClock
from tests.trusting import identity_of


async def live(folder: Path, url: str, login: str, token: str, fate: list[str]) -> None:
    clock = HastyClock(haste=1)
    database = await MortalDatabase.opened(folder / "soul.db", fate)
    github = github_at(url, login, token, clock, timeout_s=2)
    outbox = Outbox(
        database=database,
        journal=Journal(database, SilentConsole(), clock, Redactor()),
        clock=clock,
        senders=github_senders(identity_of(github, clock)),
        pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
        own_did=lambda: "did:plc:rowan",
    )
    say("awake")
    for line in (folder / "wanted.jsonl").read_text().splitlines():
        wanted = json.loads(line)
        body = read_body(wanted["kind"], wanted["body"])
        assert not isinstance(body, OpaqueBody)
        if not await outbox.by_cause(wanted["cause_id"]):
            await outbox.submit(ProposedAction(body, cause_id=wanted["cause_id"]))
    while (report := await outbox.deliver_due()).next_in_s is not None:
        clock.ahead += report.next_in_s
        await clock.sleep(min(report.next_in_s, 0.01))
    await github.aclose()
    await database.close()


def main() -> None:
    folder, url, login, token = sys.argv[1:]
    live_on_request(lambda fate: live(Path(folder), url, login, token, fate))


if __name__ == "__main__":
    from adapters.github import calls as _loaded  # noqa: F401 - before the first fork, not in each life

    main()
