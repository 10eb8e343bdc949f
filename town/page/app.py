"""The page's server: files, one stream of events, and routes for what the visitor writes, asks, approves and pauses.

Loopback only. A foreign website can neither read it (no CORS; checked Host, which also stops rebinding) nor post
through the browser (JSON only, and the Origin must be ours). Nothing is stored here: the network holds the posts.
"""

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters.atproto.richtext import detect_mentions
from adapters.space.wire import BadJson, encode_value, parse_json
from common.errors import SoulError
from town.atproto.index import XrpcError
from town.atproto.network import Network
from town.atproto.repo_methods import blob_response
from town.github.network import GitHubNetwork
from town.github.values import StoredIssue, StoredPull, StoredRepo
from town.page.room import MAX_TEXT, RoomOnPage
from town.page.view import ResidentStatus, feed, people
from town.serving import event_stream

_TASK = re.compile(r"### Task (\d{1,4}): (\S.*)")
_STATES = ("pending", "claimed", "in_progress", "blocked", "completed")
_PLANS_SHOWN = 12
_PULLS_SHOWN = 20
_TEXT_SHOWN = 300

Json = dict[str, Any]


def work(github: GitHubNetwork) -> Json:
    """Return the newest plans and pull requests of all public repositories: open ones first, then newest first."""
    repos = [repo for repo in github.repos() if not repo.private]
    plans = [(repo, issue) for repo in repos for issue in repo.issues.values() if issue and is_plan(issue)]
    plans.sort(key=lambda pair: (pair[1].state == "open", pair[1].id), reverse=True)
    pulls = [(repo, pull) for repo in repos for pull in repo.pulls.values()]
    pulls.sort(key=lambda pair: (pair[1].is_open, pair[1].issue.id), reverse=True)
    return {
        "plans": [_plan(*pair) for pair in plans[:_PLANS_SHOWN]],
        "pulls": [_pull(*pair) for pair in pulls[:_PULLS_SHOWN]],
    }


def is_plan(issue: StoredIssue) -> bool:
    """Return whether an issue is a plan."""
    return not issue.is_pull and (
        issue.title.startswith("[PLAN]") or any(label.name.lower() == "plan" for label in issue.labels)
    )


def tasks(body: str) -> list[Json]:
    """Return the tasks in a plan's text, in order: number, title, state and holder ("" for nobody)."""
    found: list[Json] = []
    for line in map(str.strip, body.splitlines()):
        if heading := _TASK.fullmatch(line):
            found.append(
                {"number": int(heading[1]), "title": heading[2][:_TEXT_SHOWN], "state": "pending", "holder": ""}
            )
        elif found and line.startswith("**Status:**"):
            state = line.removeprefix("**Status:**").strip().lower()
            found[-1]["state"] = state if state in _STATES else found[-1]["state"]
        elif found and line.startswith("**Assignee:**"):
            holder = line.removeprefix("**Assignee:**").strip()
            found[-1]["holder"] = holder[1:_TEXT_SHOWN] if holder.startswith("@") else ""
    return found


def _plan(repo: StoredRepo, issue: StoredIssue) -> Json:
    return {
        "repo": repo.full_name,
        "number": issue.number,
        "title": issue.title.removeprefix("[PLAN]").strip(),
        "state": issue.state,
        "by": issue.author.login,
        "tasks": tasks(issue.body or ""),
    }


def _pull(repo: StoredRepo, pull: StoredPull) -> Json:
    """Return a pull request, with the latest verdict of each of its reviewers."""
    verdicts = {
        review.author.login: review.state
        for review in pull.reviews
        if review.state != "PENDING" and review.author != pull.issue.author
    }
    return {
        "repo": repo.full_name,
        "number": pull.number,
        "title": pull.issue.title,
        "by": pull.issue.author.login,
        "branch": pull.head_ref,
        "state": _state(pull),
        "reviews": [{"by": login, "state": state.lower()} for login, state in verdicts.items()],
        "asked": [account.login for account in pull.requested],
    }


def _state(pull: StoredPull) -> str:
    if pull.merged_at:
        return "merged"
    if not pull.is_open:
        return "closed"
    return "draft" if pull.draft else "open"


@dataclass(frozen=True, slots=True)
class ToldStep:
    """One event: `at` is ISO-8601 UTC or "", `details` are lines below it."""

    at: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """Why a resident did something, in plain words; `ending` says where it stands now, if it is not finished.

    `lead` sums it up in one sentence.
    """

    title: str
    steps: tuple[ToldStep, ...]
    ending: str = ""
    lead: str = ""


class Controls(Protocol):
    """The owner's controls. Each raises `SoulError`, with a one-line message, for what is unknown or impossible."""

    async def why(self, handle: str, uri: str) -> Told:
        """Explain why the resident wrote the post `uri`, or did not answer it."""
        ...

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        """Approve or reject a draft for the owner."""
        ...

    async def pause(self, handle: str, *, paused: bool) -> None:
        """Stop the resident's public acts, or let them leave again."""
        ...


_TICK_S = 1.0
_SETTLE_S = 0.05
_MAX_BODY_BYTES = 20_000
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PICTURE_TYPES = {"image/jpeg", "image/png", "image/webp", "image/gif"}
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class PageSource:
    """What the page shows, and what it may do.

    Attributes:
        network: the network to show.
        residents_status: returns the status of all residents; called once a second for each open page, in a thread.
        say_as: the did as which the page's form posts.
        about: one line on what mind the residents have.
        avatars: SVG pictures by handle.
        controls: the owner's controls of the residents.
        room: the agent space that the page shows, if there is one.
        github: whose plans and pull requests the page shows, if there is a room.
        lacks: what this machine lacks, and what does not work without it; "" for nothing.
        listen: returns the handle to address with a text that the visitor addresses to nobody; "" for none.

    """

    network: Network
    residents_status: Callable[[], Sequence[ResidentStatus]]
    say_as: str
    about: str
    avatars: Mapping[str, str]
    controls: Controls
    room: RoomOnPage | None = None
    github: GitHubNetwork | None = None
    lacks: str = ""
    listen: Callable[[str], str] = lambda _: ""


def page_app(source: PageSource) -> Starlette:
    """Return the application; serve it on loopback with `town.serving.serve`."""
    page = _PageEndpoints(source)
    return Starlette(
        routes=[
            Route("/", page.file),
            Route("/static/{name}", page.file),
            Route("/avatars/{handle}", page.avatar),
            Route("/pictures/{did}/{cid}", page.picture),
            Route("/api/town", page.town),
            Route("/api/events", page.events),
            Route("/api/posts", page.say, methods=["POST"]),
            Route("/api/room", page.speak, methods=["POST"]),
            Route("/api/why", page.why),
            Route("/api/drafts", page.decide, methods=["POST"]),
            Route("/api/pause", page.pause, methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False),
            Middleware(_SafeHeaders),
        ],
    )


class _PageEndpoints:
    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._files = {
            file.name: (file.read_bytes(), _TYPES[file.name[file.name.rindex(".") :]])
            for file in (files("town.page") / "static").iterdir()
            if file.is_file()
        }

    async def file(self, request: Request) -> Response:
        content, kind = self._files.get(request.path_params.get("name", "index.html"), (None, ""))
        return Response(content, media_type=kind) if content is not None else Response("Not found", 404)

    async def avatar(self, request: Request) -> Response:
        picture = self._source.avatars.get(request.path_params["handle"])
        return Response(picture, media_type="image/svg+xml") if picture else Response("Not found", 404)

    async def picture(self, request: Request) -> Response:
        """Serve a picture of a post as it was uploaded."""
        blob = self._source.network.blob(request.path_params["did"], request.path_params["cid"])
        is_picture = blob is not None and blob.mime_type in _PICTURE_TYPES
        return blob_response(blob) if blob and is_picture else Response("Not found", 404)

    async def town(self, _request: Request) -> Response:
        """Serve what does not change while the page is open."""
        you, room = self._source.network.actor(self._source.say_as), self._source.room
        residents = await run_in_threadpool(self._source.residents_status)
        return _answer(
            {
                "about": self._source.about,
                "you": {"did": you.did, "handle": you.handle, "name": you.display_name or you.handle},
                "avatars": sorted(self._source.avatars),
                "residents": [resident.handle for resident in residents],
                "lacks": self._source.lacks,
                "room": {
                    "github": room.github_url,
                    "requests": room.requests,
                    "builds": room.builds,
                    "work": self._source.github is not None,
                }
                if room
                else None,
            }
        )

    async def events(self, request: Request) -> Response:
        return event_stream(self._changes(request))

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        """Yield each part, complete, whenever it changes.

        Parts are `feed`, `room` (the messages), `present` (who is in it), `work` (plans, pull requests) and `people`.
        """
        posted, talked, worked = asyncio.Event(), asyncio.Event(), asyncio.Event()
        posted.set()
        changed = asyncio.Event()
        ends = [self._source.network.subscribe(lambda _event: _wake(posted, changed))]
        if self._source.room:
            talked.set()
            ends.append(self._source.room.view.subscribe(lambda: _wake(talked, changed)))
        if self._source.github:
            worked.set()
            ends.append(self._source.github.subscribe(lambda _event: _wake(worked, changed)))
        sent: dict[str, str] = {}
        try:
            while not await request.is_disconnected():
                for name, part in [part async for part in self._parts(posted, talked, worked)]:
                    event = _event(name, part)
                    if sent.get(name) != event:
                        sent[name] = event
                        yield event
                try:
                    await asyncio.wait_for(changed.wait(), _TICK_S)
                    await asyncio.sleep(_SETTLE_S)
                    changed.clear()
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            for end in ends:
                end()

    async def _parts(
        self, posted: asyncio.Event, talked: asyncio.Event, worked: asyncio.Event
    ) -> AsyncIterator[tuple[str, Any]]:
        if posted.is_set():
            posted.clear()
            yield "feed", feed(self._source.network)
        if self._source.room:
            if talked.is_set():
                talked.clear()
                yield "room", self._source.room.view.rows()
            yield "present", self._source.room.view.present()
        if self._source.github and worked.is_set():
            worked.clear()
            yield "work", work(self._source.github)
        yield "people", people(self._source.network, await run_in_threadpool(self._source.residents_status))

    async def say(self, request: Request) -> Response:
        """Post `{"text": …, "replyTo": uri or null}` as the visitor."""
        body = await _asked(request, text=str)
        if isinstance(body, Response):
            return body
        text, reply_to = body["text"].strip(), body.get("replyTo")
        if not text:
            return _refuse(400, "There is nothing in it yet.")
        reply_to = str(reply_to) if reply_to else None
        addressed = self._addressed(text, reply_to)
        try:
            uri, _ = self._source.network.post_as(self._source.say_as, addressed, reply_to_uri=reply_to)
        except XrpcError as error:
            gone = error.name == "NotFound"
            added = addressed.removesuffix(text)
            most = f"At most 300 characters fit into a post{f', with {added}before it' if added else ''}."
            return _refuse(400, "The post you answer is gone." if gone else most)
        return _answer({"uri": uri}, 201)

    def _addressed(self, text: str, reply_to: str | None) -> str:
        """Return `text`, after a listener's handle if it mentions nobody and replies to nobody else's post."""
        answered = self._source.network.index.posts.get(reply_to or "")
        if detect_mentions(text) or (answered and answered.at.did != self._source.say_as):
            return text
        account = self._source.network.find(self._source.listen(text))
        return f"@{account.handle} {text}" if account else text

    async def speak(self, request: Request) -> Response:
        """Send `{"text": …}` as the room's host."""
        body = await _asked(request, text=str)
        if isinstance(body, Response):
            return body
        if self._source.room is None:
            return _refuse(404, "This town has no room.")
        text = body["text"].strip()
        if not text:
            return _refuse(400, "There is nothing in it yet.")
        if len(text) > MAX_TEXT:
            return _refuse(400, f"At most {MAX_TEXT:,} characters at once, please.")
        self._source.room.speaker.broadcast_from_host(text)
        return Response(status_code=204)

    async def why(self, request: Request) -> Response:
        """Serve the explanation of the post `uri` by the resident `handle`."""
        query = request.query_params
        try:
            told = await self._source.controls.why(query.get("handle", ""), query.get("uri", ""))
        except SoulError as error:
            return _refuse(404, str(error))
        return _answer(dataclasses.asdict(told))

    async def decide(self, request: Request) -> Response:
        """Decide on a draft: `{"handle": …, "id": …, "yes": true or false}`."""
        body = await _asked(request, handle=str, id=str, yes=bool)
        if isinstance(body, Response):
            return body
        return await _done(self._source.controls.decide(body["handle"], body["id"], yes=body["yes"]))

    async def pause(self, request: Request) -> Response:
        """Pause or resume: `{"handle": …, "paused": true or false}`."""
        body = await _asked(request, handle=str, paused=bool)
        if isinstance(body, Response):
            return body
        return await _done(self._source.controls.pause(body["handle"], paused=body["paused"]))


class _SafeHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_safely if scope["type"] == "http" else send)


def _wake(*events: asyncio.Event) -> None:
    for event in events:
        event.set()


def _is_ours(request: Request) -> bool:
    """Return whether the page itself sent this: JSON (not a simple form), and from our own origin."""
    is_json = request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    return is_json and request.headers.get("origin") == f"{request.url.scheme}://{request.headers['host']}"


async def _asked(request: Request, **fields: type) -> dict[str, Any] | Response:
    """Return the JSON that the page sent, if it has these fields; otherwise the refusal."""
    if not _is_ours(request):
        return _refuse(403, "Only this page may write here: JSON with the page's address as Origin.")
    content = await request.body()
    try:
        body = parse_json(content, max_bytes=_MAX_BODY_BYTES)
    except BadJson:
        body = None
    if not isinstance(body, dict) or not all(isinstance(body.get(name), kind) for name, kind in fields.items()):
        return _refuse(400, "That could not be read.")
    return body


async def _done(act: Awaitable[None]) -> Response:
    try:
        await act
    except SoulError as error:
        return _refuse(400, str(error))
    return Response(status_code=204)


def _event(name: str, data: Any) -> str:  # noqa: ANN401 - JSON
    return f"event: {name}\ndata: {encode_value(data)}\n\n"


def _answer(data: Any, status: int = 200) -> Response:  # noqa: ANN401 - JSON
    return Response(encode_value(data), status, media_type="application/json")


def _refuse(status: int, error: str) -> Response:
    return _answer({"error": error}, status)
