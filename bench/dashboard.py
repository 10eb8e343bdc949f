"""Measures how long each page of `soul dashboard` takes with a long journal.

Usage: `python bench/dashboard.py [--rows 1000000] [--rounds 5]`

The journal is generated: thirty days up to now of decisions, acts, model calls and errors, in a home whose SOUL is
not awake, so that the first page also looks for the reason. Each page is requested by HTTP over loopback.

The exit code is 1 if the slowest answer of a page takes more than a second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from common.clock import SystemClock, iso
from common.settings import load_settings
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from soul.dashboard.serving import serving_dashboard
from tests.running_town import write_home

LIMIT_S = 1.0
DAYS = 30
ACTS = ("replied", "liked", "silent", "skipped", "concluded", "left", "later")
KINDS = ("decision", "act", "model", "act", "error")
POST = "at://did:plc:somebody/app.bsky.feed.post/3l"
LINK = "https://bsky.app/profile/kit.test/post/3l"
INSERT = """
INSERT INTO journal (at, kind, loop, summary, line, reason, trigger_uri, author, intent_id, data, dids)
VALUES (?, ?, 'awareness', 'Replying to @kit.test', 'social', ?, ?, 'kit.test', ?, ?, '')
"""


def rows(count: int) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a journal, evenly over the days, five for each post."""
    begin = SystemClock().now() - timedelta(days=DAYS)
    for number in range(count):
        at, post = iso(begin + timedelta(days=DAYS) * (number / count)), number // len(KINDS)
        data = json.dumps(
            {"act": ACTS[post % len(ACTS)], "code": f"code-{post % 40}", "kind": "post", "tokens": number}
        )
        reason = f"the reason of kind {post % 200}, in about as many words as such a reason has"
        yield at, KINDS[number % len(KINDS)], reason, f"{POST}{post}", f"{post:032x}", data


async def measure(count: int, rounds: int) -> int:
    """Return how many pages are too slow."""
    with tempfile.TemporaryDirectory() as folder:
        home = write_home(Path(folder), "rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner", SOUL_SPEED="1")
        database = await Database.open(home.database, MIGRATIONS)
        await database.run(lambda connection: connection.executemany(INSERT, rows(count)))
        await database.close()
        settings = load_settings(home.root).model_copy(update={"dashboard_port": 0})
        async with serving_dashboard(settings, home, SystemClock()) as address:
            base = address.partition("/?")[0]
            async with httpx.AsyncClient(base_url=base, follow_redirects=True, timeout=60) as client:
                await client.get(address)
                client.headers["authorization"] = f"Bearer {address.partition('token=')[2]}"
                last = (count - 1) // len(KINDS)
                stories = (f"/why?of={POST}{last}", f"/why?of={LINK}{last}")
                pages = ("/", *stories, "/work", "/memory", "/people", "/growing", "/spending", "/metrics")
                return sum([await too_slow(client, page, rounds) for page in pages])


async def too_slow(client: httpx.AsyncClient, page: str, rounds: int) -> bool:
    """Measure one page, print it, and return whether it is too slow."""
    took = []
    for _ in range(rounds):
        started = time.perf_counter()
        answer = await client.get(page)
        took.append(time.perf_counter() - started)
        if answer.status_code != httpx.codes.OK:
            raise SystemExit(f"{page}: HTTP {answer.status_code}")
    is_slow = max(took) > LIMIT_S
    sys.stdout.write(
        f"{page[:48]:50}{min(took) * 1000:8.0f} to {max(took) * 1000:.0f} ms {'SLOW' if is_slow else 'ok'}\n"
    )
    return is_slow


def main() -> int:
    """Measure all pages, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    return min(1, asyncio.run(measure(given.rows, given.rounds)))


if __name__ == "__main__":
    sys.exit(main())
