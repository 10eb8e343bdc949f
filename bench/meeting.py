"""People meet one SOUL through a day and the next morning, with a model of your choice; reports each meeting.

Run: `python bench/meeting.py FOLDER MODEL_URL [--speed 60] [--night 5] [--most 150] [--name NAME] [--set NAME=VALUE]`

MODEL_URL is any service with the chat-completions API; `AI_GATEWAY_API_KEY` in the environment is its key.
Bluesky, GitHub and a room are those of the town, on loopback; the SOUL is a process of the unmodified program, whose
home stays in FOLDER, beside `calls.jsonl`, which holds each request to the model with its answer, and `meeting.md`.

The people and their lines are those of `meeting_day.py`. A situation begins once the one before was answered, or
after `--most` seconds; the night lasts `--night` hours of the SOUL. At the end it prints as Markdown a table by
situation and the totals. "As written" is an answer that left with the text that the model wrote first.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import isawaitable
from pathlib import Path
from typing import Any

from starlette.responses import Response, StreamingResponse

from adapters.atproto.types import Post
from adapters.github.types import Repo
from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from adapters.space.types import Said
from bench.building import OWNER, github_home, read_only, spent_by_purpose, told_spent
from bench.meeting_day import DAY, MORNING, PEER, SELF, SITE, SOUL, WORKSPACE, MeetingDay, MeetingStage
from common.clock import Clock, SystemClock, parse_iso
from common.files import write_atomic
from modules.runtime.home import Home
from tests.modules.lives.space.soul_in_room import Onlooker
from tests.patience import until
from tests.program import started
from tests.running_town import KEY, open_running_town
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.model.service import GatewayMind, model_app
from town.model.types import Json
from town.serving import serve

SAID = {
    "answer_request": "text",
    "bluesky_reply": "text",
    "bluesky_reply_picture": "text",
    "bluesky_post": "text",
    "graceful_exit": "closing_message",
    "message_answer": "text",
    "github_create_issue_comment": "body",
    "github_graceful_exit": "closing_message",
    "github_submit_review": "body",
    "space_decision": "message",
}
"""The argument of each tool that holds text for somebody else."""


@dataclass(frozen=True, slots=True)
class WrittenText:
    """Text for somebody that a call wrote, and its tool; "" for the text of the answer itself."""

    tool: str
    text: str


@dataclass(slots=True)
class KeptCall:
    """A request of the SOUL, when it came and ended, and its answer. `ended` is None while it is in progress."""

    at: datetime
    body: Json
    ended: datetime | None = None
    received: bytes = b""

    @property
    def purpose(self) -> str:
        """The purpose of the call, as the SOUL states it; "" if it does not."""
        return str((self.body.get("facts") or {}).get("purpose") or "")

    @property
    def tools(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The tool calls in the answer, in order."""
        return [_as_call(one) for one in self._answer()[1]]

    def written(self) -> Iterator[WrittenText]:
        """Yield the texts for somebody else, in order."""
        content, _ = self._answer()
        for name, arguments in self.tools:
            if text := str(arguments.get(SAID.get(name, "")) or "").strip():
                yield WrittenText(name, text)
        if self.purpose == _OWNER and content.strip() and not self.tools:
            yield WrittenText("", content.strip())

    def told_of(self, written: WrittenText) -> str:
        """Return the result of the earlier call in this turn that wrote `written`; "" if this request holds none."""
        messages = self.body["messages"]
        made = {one["id"]: _as_call(one) for message in messages for one in message.get("tool_calls") or ()}
        ids = {
            key
            for key, (name, arguments) in made.items()
            if name == written.tool and str(arguments.get(SAID.get(name, ""), "")).strip() == written.text
        }
        answers = [_text_of(one["content"]) for one in messages if one.get("tool_call_id") in ids]
        return answers[-1] if answers else ""

    def _answer(self) -> tuple[str, list[Json]]:
        """Return the text and the tool calls of the answer, whether it was streamed or not."""
        text = self.received.decode(errors="replace")
        if text.startswith("{"):
            message = (json.loads(text).get("choices") or [{}])[0].get("message") or {}
            return _text_of(message.get("content")), message.get("tool_calls") or []
        words, calls = "", dict[int, Json]()
        for line in text.splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line.removeprefix("data: ")).get("choices") or ():
                delta = choice.get("delta") or {}
                words += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    kept = calls.setdefault(piece.get("index", 0), {"function": {"name": "", "arguments": ""}})
                    for name, part in (piece.get("function") or {}).items():
                        kept["function"][name] = kept["function"].get(name, "") + (part or "")
        return words, list(calls.values())


@dataclass(frozen=True, slots=True)
class KeptMind(GatewayMind):
    """Forwards each request, without the facts, and keeps it with its answer.

    Attributes:
        path: a file to which each is added as a line of JSON once it has ended.
        calls: all of them, oldest first.

    """

    path: Path
    calls: list[KeptCall] = field(default_factory=list)
    clock: Clock = field(default_factory=SystemClock)

    async def forward(self, body: Json) -> Response:
        kept = KeptCall(self.clock.now(), body)
        self.calls.append(kept)
        try:
            response = await GatewayMind.forward(self, body)
        except BaseException:
            self._end(kept)
            raise
        if isinstance(response, StreamingResponse):
            response.body_iterator = self._keep(kept, response.body_iterator)
        else:
            kept.received = bytes(response.body)
            self._end(kept)
        return response

    def _end(self, kept: KeptCall) -> None:
        kept.ended = self.clock.now()
        line = {"at": f"{kept.at}", "asked": kept.body, "answered": kept.received.decode(errors="replace")}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    async def _keep(self, kept: KeptCall, parts: Any) -> AsyncIterator[bytes]:  # noqa: ANN401 - Starlette's own union
        try:
            async for part in parts:
                kept.received += part
                yield part
        finally:
            self._end(kept)


def _as_call(call: Json) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the arguments of a call; arguments that are no JSON object count as none."""
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {}
    return str(function.get("name")), arguments if isinstance(arguments, dict) else {}


def _text_of(content: object) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")


_SHOWN_CHARS, _REASON_CHARS = 160, 120
_OWNER, _PUBLIC = "owner-communication", "bluesky-response"
_OWN = frozenset({"expression", "reflection", "memory-extraction", "voice-phrases", "prosoche", "grounding"})
_INTENTS = """SELECT kind, body, target, state, created_at, sent_at, error FROM intents
    WHERE coalesce(cause_id, '') <> 'expression' ORDER BY created_at"""
_LEDGER = "SELECT at, purpose, input_tokens, output_tokens FROM model_calls WHERE state = 'settled'"
_STOPPED = frozenset({"blocked", "failed", "expired"})
_TALK = frozenset({"reply", "post", "direct_message", "issue_comment", "space_chat", "review"})
_FAR = datetime.max.replace(tzinfo=UTC)


def is_own(purpose: str) -> bool:
    """Return whether a call for this purpose belongs to no situation: the SOUL makes it by itself."""
    return purpose in _OWN


@dataclass(slots=True)
class SituationTime:
    """A situation and its times.

    Attributes:
        name: its name in the table.
        began: when the people spoke.
        room_from: how many events the room had seen then.
        ended: when the next one may begin.
        in_time: whether all was answered, and the wanted result was there, before the longest wait was over.
        wanted: whether the request was fulfilled; None if silence is as good as an answer.

    """

    name: str
    began: datetime
    room_from: int
    ended: datetime | None = None
    in_time: bool = True
    wanted: bool | None = None


@dataclass(frozen=True, slots=True)
class _Left:
    """An act that left, or would have: `text` is "" for an act without text."""

    kind: str
    text: str
    state: str
    at: datetime | None
    error: str

    def told(self) -> str:
        """Return its text in the table."""
        state = "" if self.state == "done" else f" ({self.state}{f': {self.error}' if self.error else ''})"
        return f"{self.kind}{state}{f': {_short(self.text)}' if self.text else ''}"


@dataclass(slots=True)
class _Row:
    """A row of the table, with what the totals need: each text that was written first in its turn, and its fate."""

    window: SituationTime
    calls: list[KeptCall]
    tokens: tuple[float, float]
    left: list[_Left]
    notes: list[str]
    fates: list[tuple[WrittenText, str]] = field(default_factory=list)

    def told(self) -> str:
        """Return the row in Markdown."""
        written = [_short(one.text) for one, _ in self.fates[:2]]
        acts = ", ".join(name for call in self.calls for name, _ in call.tools)
        verdict = "; ".join(dict.fromkeys(fate for _, fate in self.fates))
        went = [one.told() for one in self.left] or ["silence"]
        seconds = [(one.at - self.window.began).total_seconds() for one in self.left if one.at]
        late = "" if self.window.in_time else "given up after the longest wait"
        cells = (
            self.window.name,
            str(len(self.calls)),
            f"{self.tokens[0]:,.0f}",
            f"{self.tokens[1]:,.0f}",
            "<br>".join(written) or acts or "-",
            "<br>".join(went),
            "<br>".join(filter(None, (verdict, *self.notes, "NOT DONE" if self.window.wanted is False else "", late)))
            or "-",
            f"{min(seconds):.0f}" if seconds else "-",
        )
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def report(
    home: Home, calls: Sequence[KeptCall], windows: Sequence[SituationTime], host: Onlooker, posts: Sequence[Post]
) -> str:
    """Return the whole report; `posts` are the SOUL's."""
    rows = list(_rows(home, calls, windows, host, posts))
    fates = [fate for row in rows for _, fate in row.fates]
    wanted = [row.window.wanted for row in rows if row.window.wanted is not None]
    spent = spent_by_purpose(home)
    largest = {one.purpose: one.largest for one in spent}
    own = [one for one in spent if is_own(one.purpose)]
    lines = [
        "| situation | calls | in | out | first written | left | verdict | s |",
        "|---|---|---|---|---|---|---|---|",
        *(row.told() for row in rows),
        *(f"| by itself: {one.purpose} | {one.calls} | {one.taken:,.0f} | {one.given:,.0f} | | | | |" for one in own),
        "",
        f"- sent as written: {fates.count('as written')} of {len(fates)}",
        f"- sent back: {sum(fate.startswith('sent back') for fate in fates)}",
        f"- changed or dropped: {sum(fate.startswith(('changed', 'dropped')) for fate in fates)}",
        f"- done of what needs an answer or an act: {wanted.count(True)} of {len(wanted)} situations",
        f"- largest owner's call: {largest.get(_OWNER, 0):,} tokens; largest public call: {largest.get(_PUBLIC, 0):,}",
        "",
        *(f"    {line}" for line in told_spent(home)),
    ]
    return "\n".join(lines) + "\n"


def _rows(
    home: Home, calls: Sequence[KeptCall], windows: Sequence[SituationTime], host: Onlooker, posts: Sequence[Post]
) -> Iterator[_Row]:
    with closing(read_only(home)) as connection:
        connection.row_factory = sqlite3.Row
        ledger = connection.execute(_LEDGER).fetchall()
        intents = connection.execute(_INTENTS).fetchall()
        journal = connection.execute("SELECT at, summary, reason FROM journal ORDER BY id").fetchall()
    ends = [*(one.began for one in windows[1:]), _FAR]
    events = [*(one.room_from for one in windows[1:]), len(host.seen)]
    for window, end, event in zip(windows, ends, events, strict=True):
        there = [one for one in calls if window.began <= one.at < end and not is_own(one.purpose)]
        paid = [(i, o) for at, purpose, i, o in ledger if window.began <= parse_iso(at) < end and not is_own(purpose)]
        said = [one for one in host.seen[window.room_from : event] if isinstance(one, Said) and not one.by_host]
        left = [_left(one) for one in intents if window.began <= parse_iso(one["created_at"]) < end]
        left += [_Left("room", one.content, "done", parse_iso(one.timestamp), "") for one in said]
        # NOTE(self): a reply to somebody who was forgotten since then is in the thread alone.
        known = " ".join(_plain(one.text) for one in left)
        made = [(one, parse_iso(one.created_at)) for one in posts]
        left += [
            _Left("reply", one.text, "done", at, "")
            for one, at in made
            if one.reply and window.began <= at < end and _plain(one.text) not in known
        ]
        notes = [
            f"{_short(summary, _REASON_CHARS)}: {_short(reason, _REASON_CHARS)}"
            for at, summary, reason in journal
            if window.began <= parse_iso(at) < end and "Validation rejected" in summary
        ]
        row = _Row(window, there, (sum(i for i, _ in paid), sum(o for _, o in paid)), left, notes)
        row.fates = list(_fates(there, left))
        yield row


def _left(intent: sqlite3.Row) -> _Left:
    body: str = intent["body"]
    fields = json.loads(body) if body.startswith("{") else {}
    words = "\n".join(str(fields[name]) for name in ("title", "text", "body") if fields.get(name))
    at = parse_iso(intent["sent_at"]) if intent["sent_at"] else None
    text = words or ("" if intent["kind"] in _TALK else intent["target"])
    return _Left(intent["kind"], text, intent["state"], at, intent["error"] or "")


def _fates(calls: Sequence[KeptCall], left: Sequence[_Left]) -> Iterator[tuple[WrittenText, str]]:
    """Yield the texts that the model wrote first in each turn, and what became of them."""
    began = {id(one) for one in calls if not _goes_on(one)}
    sent = [_plain(one.text) for one in left if one.text and one.state not in _STOPPED]
    for number, call in enumerate(calls):
        for written in call.written():
            told = next((found for later in calls[number + 1 :] if (found := later.told_of(written))), "")
            is_first = id(call) in began or not any(
                True for earlier in calls[:number] if _same_turn(earlier, call) for _ in earlier.written()
            )
            if is_first:
                yield written, _fate(_plain(written.text), sent, told)


def _fate(text: str, sent: Sequence[str], told: str) -> str:
    """Return what became of a text: it left as written, was sent back with `told`, was changed or dropped."""
    whole = " ".join(sent)
    if text in sent or text in whole:
        return "as written"
    if told and not told.lstrip().startswith('{"state"'):
        return f"sent back: {_short(told, _REASON_CHARS)}"
    beginning = text[: max(20, len(text) // 2)]
    return "changed" if beginning in whole else "dropped"


def _goes_on(call: KeptCall) -> bool:
    """Return whether a request continues its turn: its last message is the result of a tool."""
    messages = call.body["messages"]
    return bool(messages) and messages[-1].get("role") == "tool"


def _same_turn(earlier: KeptCall, later: KeptCall) -> bool:
    one, other = (call.body["messages"] for call in (earlier, later))
    return len(one) < len(other) and one[1:] == other[1 : len(one)]


def _short(text: str, chars: int = _SHOWN_CHARS) -> str:
    words = " ".join(text.split())
    return words if len(words) <= chars else f"{words[:chars]}…"


def _plain(text: str) -> str:
    return " ".join(text.split())


sys.path.insert(0, str(Path(__file__).parents[1]))

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
    """Goes through the situations of a day, and records when each began and ended."""

    def __init__(self, day: MeetingDay, mind: KeptMind, home: Home, most_s: float) -> None:
        self.windows: list[SituationTime] = []
        self._day, self._mind, self._home, self._most_s = day, mind, home, most_s
        self._clock = SystemClock()

    async def meet(self, stages: Sequence[MeetingStage]) -> None:
        """Run the situations, one after the other."""
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

    async def _goes_on(self, stage: MeetingStage, window: SituationTime) -> bool:
        """Wait until all is answered; return False if that took too long."""
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
        """Return how much happened since then: decisions, work that waits or is in progress, and calls."""
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
    with suppress(KeyboardInterrupt):  # the report of the meetings so far is written
        asyncio.run(_run(options))


if __name__ == "__main__":
    main()
