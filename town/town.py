"""Opens the whole town: a network, a GitHub, a gallery, a room, a model service, a page, and accounts.

Everything is on loopback and in memory, except the room's record, which is stored beside the homes, and the Git
repositories, which are in a temporary folder. Nothing remains once the town closes and the room's folder is deleted.
"""

import secrets
import string
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from adapters.space.chatlog import ChatLog
from adapters.space.room_addressing import parse_addressed
from adapters.space.server import SpaceServer
from common.clock import Clock, SystemClock
from common.errors import Fatal
from common.result import Err
from town import passing_by
from town.atproto.index import AtprotoAccount
from town.atproto.network import Network
from town.atproto.service import AtprotoLimits, atproto_app
from town.gallery.service import gallery_app
from town.github.arrangement import REQUESTS, arrange
from town.github.limits import GitHubMeter, Writes
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.mind.scripted import ScriptedMind
from town.mind.words import GENERAL, load_bank
from town.model.service import GatewayMind, model_app
from town.model.types import Mind
from town.page.app import Controls, PageSource, page_app
from town.page.room import KnownResident, PageRoom, RoomOnPage
from town.page.view import ResidentStatus, read_status
from town.residents import RESIDENTS, VISITOR_AVATAR, Resident
from town.serving import serve

VISITOR = "you.test"
_ROOM_FOLDER = ".room"
_STATUS_FILE = Path(".memory") / "status.json"


@dataclass(frozen=True, slots=True)
class Town:
    """The addresses, accounts and services of an open town.

    `reads_facts` says whether the model service reads the field `facts` of a request. `accounts` and `github_tokens`
    are keyed by the resident's name, which is also its login; `owner` is the visitor, as whom the page posts; `repo`
    is the visitor's repository, `owner/name`, in which the residents may work; they are members of the organisation
    that `town.github.arrangement` names; `workspaces` are the workspaces that they watch from the start. `gallery_url`
    serves the gallery's pages, and its API under `/v2`.
    """

    page_url: str
    atproto_url: str
    model_url: str
    model: str
    model_key: str
    reads_facts: bool
    residents: tuple[Resident, ...]
    accounts: Mapping[str, AtprotoAccount]
    owner: AtprotoAccount
    network: Network
    space_url: str
    github_url: str
    github_tokens: Mapping[str, str]
    github: GitHubNetwork
    repo: str
    workspaces: tuple[str, ...]
    gallery_url: str


INTRO = "Each resident is a process of its own. They read, answer, and choose silence by themselves."


@asynccontextmanager
async def open_town(
    *,
    homes: Path,
    controls: Controls,
    port: int = 0,
    mind: Literal["scripted"] | GatewayMind = "scripted",
    residents: Sequence[Resident] = RESIDENTS,
    clock: Clock | None = None,
    speed: float = 1.0,
    with_workspaces: bool = False,
    lacks: str = "",
    intro: str = INTRO,
) -> AsyncIterator[Town]:
    """Open the town, and close it on exit.

    Args:
        homes: the folder that holds each resident's home under its name; their status files are read there.
        controls: the owner's controls of the residents, for the page.
        port: the port of the page; 0 picks a free one.
        mind: what answers for the residents' model.
        residents: who lives here.
        clock: the network's time.
        speed: how many times faster than real time the fastest resident lives; scales the limits of its services.
        with_workspaces: whether the organisation has two workspaces from the start: one for the residents' ritual,
            and a library with a bug.
        lacks: what this machine lacks and what does not work without it, for the page; "" for nothing.
        intro: the first sentence on the page.

    Raises:
        ConfigError: the port is taken.

    """
    time = clock or SystemClock()
    network = Network(clock=time)
    accounts = {
        resident.name: network.create_account(
            resident.handle, _password(), display_name=resident.display_name, description=resident.bio
        )
        for resident in residents
    }
    owner = network.create_account(VISITOR, _password(), display_name="You")
    scripted = ScriptedMind()
    thinking: Mind | GatewayMind = scripted if mind == "scripted" else mind
    builds = scripted.builds if mind == "scripted" else ""
    model_key = secrets.token_urlsafe(24)

    def status() -> list[ResidentStatus]:
        now = time.now()
        return [read_status(resident.handle, homes / resident.name / _STATUS_FILE, now) for resident in residents]

    def ready() -> list[str]:
        return [one.handle for one in status() if one.awake and not one.life.get("standing", {}).get("paused")]

    known = {resident.name: KnownResident(resident.handle, resident.display_name) for resident in residents}
    known[passing_by.NAME] = KnownResident(passing_by.HANDLE, passing_by.NAME)
    async with AsyncExitStack() as stack:
        git_folder = Path(stack.enter_context(TemporaryDirectory(prefix="town-git-")))
        dids = {name: account.did for name, account in accounts.items()}
        names = {one.name: one.display_name for one in residents}
        works = await arrange(names, dids, time, git_folder, with_workspaces=with_workspaces)
        github, repo = works.network, works.square
        room = await stack.enter_async_context(
            open_room(homes / _ROOM_FOLDER, time, known, KnownResident(VISITOR, "You"))
        )
        gallery_url = await stack.enter_async_context(serve(gallery_app(time)))
        meter = GitHubMeter(time, writes=Writes(), speed=speed)
        github_url = await stack.enter_async_context(serve(github_app(github, meter=meter)))
        page = page_app(
            PageSource(
                network,
                status,
                owner.did,
                about=f"{intro} {thinking.about}",
                lacks=lacks,
                avatars={resident.handle: resident.avatar for resident in residents} | {VISITOR: VISITOR_AVATAR},
                controls=controls,
                room=RoomOnPage(room.view, room.server, github_url, REQUESTS if with_workspaces else (), builds),
                github=github,
                listen=Listeners(residents, ready).choose,
            )
        )
        page_url = await stack.enter_async_context(serve(page, port=port))
        atproto_url = await stack.enter_async_context(
            serve(atproto_app(network, limits=AtprotoLimits().at_speed(speed)))
        )
        model_url = await stack.enter_async_context(serve(model_app(thinking, api_key=model_key)))
        yield Town(
            page_url=page_url,
            atproto_url=atproto_url,
            model_url=f"{model_url}/v1",
            model=thinking.models[0],
            model_key=model_key,
            reads_facts=mind == "scripted",
            residents=tuple(residents),
            accounts=accounts,
            owner=owner,
            network=network,
            space_url=room.url,
            github_url=github_url,
            github_tokens=works.tokens,
            github=github,
            repo=repo.full_name,
            workspaces=works.workspaces,
            gallery_url=gallery_url,
        )


def _password() -> str:
    """Return a password like Bluesky's app passwords: four groups of four characters."""
    letters = string.ascii_lowercase + "234567"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))


class Listeners:
    """Chooses a resident for a text. `ready` returns the handles of those who would answer now; if none, all count."""

    def __init__(self, residents: Sequence[Resident], ready: Callable[[], Collection[str]]) -> None:
        self._bank = load_bank()
        self._ready = ready
        self._fields = {resident.handle: self._field(f"{resident.bio} {resident.soul}") for resident in residents}
        self._turns = cycle(self._fields)
        self._names = {resident.name: resident.handle for resident in residents}

    def choose(self, text: str) -> str:
        """Return the handle of the resident that `text` names, else that fits, else the next in turn; "" if none."""
        if named := parse_addressed(text, list(self._names)):
            return self._names[named[0]]
        ready = set(self._ready()) & self._fields.keys() or set(self._fields)
        touched = self._field(text)
        fitting = [handle for handle, field in self._fields.items() if handle in ready and field == touched != GENERAL]
        if fitting or not ready:
            return fitting[0] if fitting else ""
        return next(handle for handle in self._turns if handle in ready)

    def _field(self, text: str) -> str:
        field = self._bank.field_of(text)
        return field.name if field else GENERAL


@dataclass(frozen=True, slots=True)
class TownRoom:
    """The room's server, its view for the page, and the URL where members join."""

    server: SpaceServer
    view: PageRoom
    url: str


@asynccontextmanager
async def open_room(
    folder: Path, clock: Clock, known: Mapping[str, KnownResident], host: KnownResident
) -> AsyncIterator[TownRoom]:
    """Open the room on a free port, and close it on exit.

    Args:
        folder: for its record; created if missing.
        clock: the room's time.
        known: residents by their name in the room.
        host: the visitor.

    Raises:
        Fatal: nothing can listen on loopback.

    """
    view = PageRoom(clock, known, host)
    server = SpaceServer(ChatLog(folder), view, clock=clock)
    started = await server.start(0)
    if isinstance(started, Err):
        raise Fatal(started.error, remedy="Look what keeps programs from listening on 127.0.0.1.")
    try:
        yield TownRoom(server, view, f"ws://127.0.0.1:{started.data}")
    finally:
        server.broadcast_shutdown()
        await server.stop()
