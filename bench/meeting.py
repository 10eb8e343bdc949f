"""One SOUL is met through a day and the next morning, with a model of your choice; tells how each meeting went.

Run: `python bench/meeting.py FOLDER MODEL_URL [--speed 60] [--night 5] [--most 150] [--name NAME] [--set NAME=VALUE]`

MODEL_URL is any service that speaks the chat-completions interface; `AI_GATEWAY_API_KEY` in the environment is its key.
Bluesky, GitHub and a room are those of the town, on loopback; the SOUL is a process of the unmodified program, whose
home stays in FOLDER, beside `calls.jsonl`, which holds each request to the model with its answer, and `meeting.md`.

The people and their words are those of `meeting_day.py`. One situation begins after the other, once all was answered or
after `--most` seconds; the night lasts `--night` hours of the SOUL. At the end it prints as Markdown a table by
situation and the totals. "As written" is an answer that left with the words that the model wrote first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from inspect import isawaitable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from adapters.github.types import Repo
from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from bench.homes import OWNER, github_home, read_only
from bench.kept_mind import KeptMind
from bench.meeting_day import DAY, MORNING, PEER, SELF, SITE, SOUL, WORKSPACE, MeetingDay, Situation
from bench.meeting_report import SituationTime, is_own, report
from common.clock import SystemClock
from common.files import write_atomic
from modules.runtime.home import Home
from tests.patience import until
from tests.program import started
from tests.running_town import KEY, open_running_town
from tests.scenarios.room_society import Onlooker
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.model.service import model_app
from town.serving import serve

_LOOK_S = 0.5
_QUIET_S = 5.0
_AWAKE_S = 60.0
_WAITING = """SELECT
    (SELECT count(*) FROM intents WHERE state IN ('pending', 'sending') AND kind <> 'post' AND created_at >= ?1)
    + (SELECT count(*) FROM pending_notifications WHERE state = 'pending')
    + (SELECT count(*) FROM direct_messages WHERE state = 'pending')"""
_HAPPENED = """SELECT (SELECT count(*) FROM intents WHERE created_at >= ?1)
    + (SELECT count(*) FROM journal WHERE kind = 'decision' AND at >= ?1 AND loop <> 'expression')"""


class Meeting:
    """Goes through the situations of a day, and remembers when each began and ended."""

    def __init__(self, day: MeetingDay, mind: KeptMind, home: Home, most_s: float) -> None:
        self.windows: list[SituationTime] = []
        self._day, self._mind, self._home, self._most_s = day, mind, home, most_s
        self._clock = SystemClock()

    async def meet(self, stages: Sequence[Situation]) -> None:
        """Let each situation happen, one after the other."""
        for stage in stages:
            sys.stdout.write(f"{self._clock.now():%H:%M:%S} {stage.name}\n")
            sys.stdout.flush()
            window = SituationTime(stage.name, self._clock.now(), room_from=len(self._day.host.seen))
            self.windows.append(window)
            if isawaitable(begun := stage.begin(self._day)):
                await begun
            window.in_time = await self._goes_on(stage, window)
            window.wanted = stage.wanted(self._day) if stage.wanted else None
            window.ended = self._clock.now()

    async def _goes_on(self, stage: Situation, window: SituationTime) -> bool:
        """Wait until all is answered; False if that took too long."""
        left, began = list(stage.then), self._clock.monotonic()
        before, quiet_since = self._state(window.began), began
        while (now := self._clock.monotonic()) - began < self._most_s:
            await asyncio.sleep(_LOOK_S)
            if left and left[0](self._day):
                left.pop(0)
                quiet_since = now
            state = self._state(window.began)
            if state != before:
                before, quiet_since = state, now
            happened, waiting, calls = state
            is_over = bool(happened or calls) and not waiting and now - quiet_since >= _QUIET_S
            if is_over and (stage.wanted is None or stage.wanted(self._day)):
                return True
        return False

    def _state(self, since: datetime) -> tuple[int, int, int]:
        """Return what happened since then: what was decided, what waits or is under way, and the calls."""
        at = since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        connection = read_only(self._home)
        try:
            happened, waiting = (connection.execute(query, (at,)).fetchone()[0] for query in (_HAPPENED, _WAITING))
        finally:
            connection.close()
        calls = [one for one in self._mind.calls if one.at >= since and not is_own(one.purpose)]
        return happened, waiting + sum(one.ended is None for one in calls), len(calls)


async def _run(options: argparse.Namespace) -> None:
    folder: Path = options.folder
    given = dict(one.split("=", 1) for one in options.set)
    key = os.environ.get("AI_GATEWAY_API_KEY", KEY)
    mind = KeptMind(options.model.rstrip("/"), key, options.name, folder / "calls.jsonl")
    async with open_running_town(folder) as town, AsyncExitStack() as stack:
        host = Onlooker()
        room = SpaceServer(ChatLog(folder / "room"), host, clock=SystemClock())
        port = (await room.start(0)).or_raise()
        stack.push_async_callback(room.stop)
        network = GitHubNetwork(clock=SystemClock(), git_folder=folder / ".git-server")
        town.github, town.github_url = network, await stack.enter_async_context(serve(github_app(network)))
        owner = network.create_account(OWNER)
        for name in (SOUL, PEER):
            network.create_account(name, website=f"https://bsky.app/profile/{town.account(name)}")
        site, workspace = (network.create_repo(owner, name, collaborators=[SOUL, PEER]) for name in (SITE, WORKSPACE))
        town.network.put(town.account(SOUL), "chat.bsky.actor.declaration", "self", {"allowIncoming": "all"})
        settings = {
            "AI_GATEWAY_BASE_URL": f"{await stack.enter_async_context(serve(model_app(mind, api_key=KEY)))}/v1",
            "AI_GATEWAY_MODEL": options.name,
            "AI_GATEWAY_FACTS": "on",
            "SOUL_SPEED": f"{options.speed:g}",
            "SOUL_PEERS": f"{PEER}.test",
            "SOUL_MESSAGES_FROM": "all",
            "SPACE_URL": f"ws://127.0.0.1:{port}",
        }
        home = github_home(town, network, SOUL, [Repo(OWNER, WORKSPACE)], **(settings | given))
        write_atomic(home.self_md, SELF)
        log = stack.enter_context((folder / "life.log").open("wb"))
        await stack.enter_async_context(
            started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE, stdout=log.fileno())
        )
        await until(lambda: bool(room.get_connected_agents()), _AWAKE_S, what="the SOUL in the room")
        day = MeetingDay(town, network, site, workspace, room, host)
        meeting = Meeting(day, mind, home, options.most)
        try:
            await meeting.meet(DAY)
            window = SituationTime("the night", SystemClock().now(), room_from=len(host.seen))
            meeting.windows.append(window)
            await asyncio.sleep(options.night * 3600 / options.speed)
            window.ended = SystemClock().now()
            await meeting.meet(MORNING)
        finally:
            own = [one for one in town.network.posts(1000) if one.author.did == town.account(SOUL)]
            told = report(home, mind.calls, meeting.windows, host, own[::-1])
            (folder / "meeting.md").write_text(told, "utf-8")
            sys.stdout.write(f"\n{told}")


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("model", metavar="MODEL_URL")
    parser.add_argument("--name", default="test-mind", help="the name of the model")
    parser.add_argument("--speed", type=float, default=60.0, help="how many times faster than life the SOUL lives")
    parser.add_argument("--night", type=float, default=5.0, help="how many hours of the SOUL the night lasts")
    parser.add_argument("--most", type=float, default=150.0, help="after so many seconds a situation ends in any case")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the SOUL")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    with suppress(KeyboardInterrupt):  # told of what was met so far
        asyncio.run(_run(options))


if __name__ == "__main__":
    main()
