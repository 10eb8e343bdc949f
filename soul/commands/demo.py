"""`soul demo`: a town on this machine, three SOULs in it as separate processes, and a page to watch them.

Everything is in a temporary folder that is deleted when the demo ends, or after kill -9, when the next demo starts.
"""

import asyncio
import fcntl
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from adapters.github.types import Repo
from common.clock import SystemClock
from common.constants import HOUR_MS
from common.errors import Fatal, SoulError
from common.files import write_atomic
from common.settings import KNOWN, load_settings, unknown_among
from modules.lives.bluesky.expression import CAUSE as EXPRESSION
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.services.explanation import rendering
from modules.services.explanation.story import Story
from modules.services.peers.loop import CAUSE as PEER_POST
from modules.services.peers.own_identity import CAUSE as IDENTITY_POST
from modules.services.rituals.policy import MEMO_KIND, OPENING_KIND
from modules.services.workspaces.watched import WatchedWorkspaces
from soul.commands.drafts import decide
from soul.commands.init import fill_env
from soul.commands.options import DemoMind, DraftAction, expanded
from soul.commands.pause import resume
from soul.commands.self_ import decide_held
from soul.resources import template
from soul.terminal.output import write_error, write_lines
from town import passing_by
from town.github.arrangement import ALMANAC, ORGANISATION, TEMPLATE, VISITOR_LOGIN
from town.model.service import GatewayMind
from town.page.app import Told, ToldStep
from town.residents import RESIDENTS, Resident
from town.town import INTRO, VISITOR, Town, open_town

_REACHED: Mapping[str, str] = {"mention": "wrote to it", "reply": "replied to it", "quote": "quoted it"}
_BEGAN: Mapping[str, str] = {
    EXPRESSION: "Its schedule called for a post",
    IDENTITY_POST: "It was to tell other agents who it is",
    PEER_POST: "It was to tell of another agent that it found",
    OPENING_KIND: "It was the hour of its ritual",
    MEMO_KIND: "It was to write down what came of its ritual",
}
_BEGAN_OTHERWISE = "It acted by itself"
_DID: Mapping[str, str] = {
    "reply": "wrote an answer",
    "post": "wrote this",
    "like": "gave a like instead of words",
    "repost": "passed it on",
    "follow": "began to follow",
}


@dataclass(frozen=True, slots=True)
class HomeControls:
    """Carries out what a visitor asks on the page, in the homes of the SOULs; `homes` has them by handle."""

    homes: Mapping[str, Home]

    async def why(self, handle: str, uri: str) -> Told:
        return await asyncio.to_thread(_told, self._home(handle), uri)

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        home = self._home(handle)
        settings = load_settings(home.root)
        if "@" in draft_id:
            await decide_held(settings, home, draft_id, approve=yes)
        else:
            await decide(settings, home, DraftAction.APPROVE if yes else DraftAction.REJECT, [draft_id], "")

    async def pause(self, handle: str, *, paused: bool) -> None:
        home = self._home(handle)
        if paused:
            Control(home.memory).pause("on the town's page")
        elif not (standing := resume(home)).may_act:
            raise SoulError(f"Still {standing}")

    def _home(self, handle: str) -> Home:
        if handle not in self.homes:
            raise SoulError("Nobody of that name lives here.")
        return self.homes[handle]


def _told(home: Home, uri: str) -> Told:
    with reading(home.database) as connection:
        story = rendering.story_of(connection, uri)
    steps = (ToldStep(step.at, step.text, _plain(step.details)) for step in rendering.steps(story))
    return Told(rendering.title(story), tuple(steps), rendering.ending(story), lead(story))


def lead(story: Story) -> str:
    """Return the story in one sentence."""
    began = _BEGAN.get(story.cause.partition(":")[0], _BEGAN_OTHERWISE)
    if story.trigger:
        who = "You" if story.trigger.author == VISITOR else f"@{story.trigger.author}"
        began = f"{who} {_REACHED.get(story.trigger.reason, 'wrote')}"
    act = min(story.acts, key=lambda act: act.kind != "reply", default=None)
    if act is None:
        reasons = [decided.reason for decided in story.decisions if decided.kind == "decision" and decided.reason]
        return f"{began}, and it chose not to answer{': ' + reasons[-1] if reasons else ''}."
    passed = {rule.rule for movement in act.movements for rule in movement.rules if rule.says == "pass"}
    rules = f"passed {len(passed)} etiquette check{'s' * (len(passed) != 1)}" if passed else ""
    did = f"it {_DID.get(act.kind, 'acted')}"
    if act.state != "done":
        return f"{began}, and {did}, but that has not left."
    return f"{began}, {did}, and the result {rules}." if rules else f"{began}, and {did}."


def _plain(details: tuple[str, ...]) -> tuple[str, ...]:
    """Return the details without bare addresses, which mean nothing to a visitor."""
    return tuple(detail for detail in details if not detail.startswith("at://"))


PREFIX = "soul-demo-"
LOCK = ".lock"


@contextmanager
def demo_folder(within: Path) -> Iterator[Path]:
    """Yield a new folder in `within` and delete it at the end; first delete the unused ones of earlier demos."""
    clear_left(within)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=within) as temporary:
        folder = Path(temporary)
        handle = _locked(folder)
        try:
            yield folder
        finally:
            os.close(handle)


def clear_left(within: Path) -> None:
    """Remove the folders that killed demos of this user left; a folder without a lock file is left alone."""
    for folder in sorted(within.glob(f"{PREFIX}*")):
        try:
            _clear(folder)
        except OSError as error:
            write_error(f"{folder}, left by an earlier demo, cannot be removed: {error}", "Remove it by hand.")


def _clear(folder: Path) -> None:
    try:
        found = folder.lstat()
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW) if _ours(folder, found) else None
    except FileNotFoundError:
        return
    if handle is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if any(lock_holder(Home.at(home)) is not None for home in folder.iterdir() if home.is_dir()):
            return
        shutil.rmtree(folder)
    except BlockingIOError:
        return
    finally:
        os.close(handle)


def _ours(folder: Path, found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and folder.is_dir() and not folder.is_symlink()


def _locked(folder: Path) -> int:
    taken = folder / f"{LOCK}.new"
    handle = os.open(taken, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    taken.rename(folder / LOCK)
    return handle


_STOP_GRACE_S = 8.0
TOKENS_PER_DAY = 60_000_000
"""For the scripted mind, whose tokens cost nothing: about twice what the most active resident uses in a day."""
_TEMPO: Mapping[str, float] = {"maren": 1.5, "tobias": 2.0, "odile": 1.2}
"""Speed of each resident relative to the others, so that they do not all speak at once and one speaks often."""
_FASTEST, _MOST_SPEED = max(_TEMPO.values()), 1000
_INTRO_ALONE = (
    "Nobody lives here by itself: these accounts wait for SOULs of your own, and what they say appears below."
)
_LIVES_FIRST_MS = 12 * HOUR_MS
"""How long a resident lives, in its own time, before its first proposal; two real minutes for the fastest one."""
PASSES_BY_AFTER_S = 20.0
_CAUTIOUS = "odile"
_NEEDED: Mapping[str, str] = {"bwrap": "bubblewrap", "git": "git", "make": "make"}
"""Programs that writing code needs: the name of the package by command."""
_QUESTION = "Only passing through. @odile.test, do you salt the water before it boils, or after?"
_ABOUT_THEMSELVES = "One more thing before I go, @maren.test: what do you know about me?"


def run_demo(
    *,
    minutes: Annotated[float, typer.Option(help="Stop after this many minutes; 0 runs until Ctrl-C.")] = 0,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.", min=1, max=_MOST_SPEED)] = 180,
    port: Annotated[int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65535)] = 7070,
    mind: Annotated[DemoMind, typer.Option(help="gateway uses the model of your .env.")] = DemoMind.SCRIPTED,
    alone: Annotated[bool, typer.Option("--alone", help="Only the town, with accounts for `soul init`.")] = False,
    root: Annotated[
        Path,
        typer.Option("--home", callback=expanded, help="With --mind gateway: the folder whose .env names the model."),
    ] = Path(),
) -> None:
    """Show the town; with `alone`, without residents but with accounts for SOULs of your own.

    Raises `ConfigError` if the settings of the model are missing or wrong.
    """
    thinking, tokens_per_day = _mind(mind.value, root)
    asyncio.run(
        _show(minutes=minutes, speed=speed, port=port, mind=thinking, tokens_per_day=tokens_per_day, alone=alone)
    )


def _mind(choice: Literal["scripted", "gateway"], home: Path) -> tuple[Literal["scripted"] | GatewayMind, int]:
    """Return the mind and each resident's tokens per day; for a real model, a share of the owner's budget."""
    if choice == "scripted":
        return "scripted", TOKENS_PER_DAY
    settings = load_settings(home)
    gateway = GatewayMind(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
    )
    return gateway, settings.budget_tokens_per_day // len(RESIDENTS)


async def _show(
    *,
    minutes: float,
    speed: float,
    port: int,
    mind: Literal["scripted"] | GatewayMind,
    tokens_per_day: int,
    alone: bool,
) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signum, ended.set)
    lacks = what_is_missing()
    if lacks:
        _tell(lacks)
    with demo_folder(Path(tempfile.gettempdir())) as folder:
        controls = HomeControls({resident.handle: Home.at(folder / resident.name) for resident in RESIDENTS})
        async with (
            open_town(
                port=port,
                mind=mind,
                homes=folder,
                controls=controls,
                speed=speed * _FASTEST,
                with_workspaces=True,
                lacks=lacks,
                intro=_INTRO_ALONE if alone else INTRO,
            ) as town,
            _neighbours() as children,
            nullcontext() if alone else _passer_by(town),
        ):
            if alone:
                _tell(*accounts(town))
            else:
                for resident in town.residents:
                    make_home(folder / resident.name, resident, town, speed, tokens_per_day)
                    children.all.append(await _start(folder / resident.name, children.watched))
                ask_in_passing(town)
                names = ", ".join(resident.display_name for resident in town.residents)
                _tell(f"The town is awake: {names}.", f"Watch them, and say something: {town.page_url}")
            _tell("Ctrl-C ends it." if minutes <= 0 else f"It ends by itself in {minutes:g} minutes.")
            await _until(ended, minutes * 60 if minutes > 0 else None, children.all)
    _tell("The town is asleep again; nothing of it is left.")


def accounts(town: Town) -> list[str]:
    """Return lines on how to start a SOUL in the town: the addresses of its services, and the accounts."""
    first = next(iter(town.accounts.values()))
    lines = [
        f"The town is open, and nobody lives in it. Its page: {town.page_url}",
        "To start a SOUL in it:",
        "1. Save these lines as .env in a new folder:",
        f"ATPROTO_SERVICE_URL={town.atproto_url}",
        f"AI_GATEWAY_BASE_URL={town.model_url}",
        f"AI_GATEWAY_API_KEY={town.model_key}",
        f"AI_GATEWAY_MODEL={town.model}",
        f"AI_GATEWAY_FACTS={'on' if town.reads_facts else 'off'}",
        f"GITHUB_API_URL={town.github_url}",
        f"SPACE_URL={town.space_url}",
        "SOUL_ALLOW_PRIVATE_NET=on",
        f"2. Run `soul init` there, with {first.handle}, its password, and {town.owner.handle} as your own handle.",
        f"3. Run `soul run`. The page writes as {town.owner.handle}, whose Bluesky password is {town.owner.password}.",
        "Accounts:",
    ]
    for name, account in town.accounts.items():
        lines += [
            f"{account.handle}",
            f"  Bluesky password: {account.password}",
            f"  GitHub login: {name}",
            f"  GitHub token: {town.github_tokens[name]}",
        ]
    return lines


def what_is_missing() -> str:
    """Return which programs are not installed, what does not work without them and how to install them; or ""."""
    missing = [package for command, package in _NEEDED.items() if shutil.which(command) is None]
    if not missing:
        return ""
    names = " and ".join(missing)
    return (
        f"{names} {'is' if len(missing) == 1 else 'are'} not installed, so plans are made but nothing is built."
        f" Install with: sudo apt-get install {' '.join(missing)} (Debian, Ubuntu), or your system's package manager."
        " Then start the demo again."
    )


def make_home(root: Path, resident: Resident, town: Town, speed: float, tokens_per_day: int = TOKENS_PER_DAY) -> Home:
    """Make a home as `soul init` would, with the resident's own SOUL.md and SELF.md.

    One of the residents needs its owner's approval to speak to strangers.
    """
    home = Home.at(root)
    account = town.accounts[resident.name]
    peers = [other.handle for other in town.residents if other != resident]
    answers: Mapping[str, str] = {
        "AGENT_NAME": resident.name,
        "OWNER_BLUESKY_SOCIAL_HANDLE": town.owner.handle,
        "OWNER_BLUESKY_SOCIAL_HANDLE_DID": town.owner.did,
        "OWNER_IS_VISITOR": "on",
        "AGENT_BLUESKY_USERNAME": account.handle,
        "AGENT_BLUESKY_PASSWORD": account.password,
        "ATPROTO_SERVICE_URL": town.atproto_url,
        "AI_GATEWAY_API_KEY": town.model_key,
        "AI_GATEWAY_BASE_URL": town.model_url,
        "AI_GATEWAY_MODEL": town.model,
        "AI_GATEWAY_FACTS": "on" if town.reads_facts else "off",
        "BUDGET_TOKENS_PER_DAY": str(tokens_per_day),
        "SPACE_URL": town.space_url,
        "AGENT_GITHUB_USERNAME": resident.name,
        "AGENT_GITHUB_TOKEN": town.github_tokens[resident.name],
        "OWNER_GITHUB_USERNAME": VISITOR_LOGIN,
        "GITHUB_API_URL": town.github_url,
        "WORKSPACE_ORG": ORGANISATION,
        "WORKSPACE_TEMPLATE": TEMPLATE,
        "ARENA_API_URL": f"{town.gallery_url}/v2",
        "SOUL_PEERS": ",".join(peers),
        "SOUL_APPROVAL": "strangers" if resident.name == _CAUTIOUS else "off",
        "SOUL_ALLOW_PRIVATE_NET": "on",
        "IMPROVEMENT_BURN_IN_MS": str(_LIVES_FIRST_MS),
        "SOUL_SPEED": f"{min(speed * _TEMPO.get(resident.name, 1.0), _MOST_SPEED):g}",
    }
    write_atomic(home.env, fill_env(template(".env.example"), dict(answers)))
    write_atomic(home.soul, resident.soul, mode=0o644)
    write_atomic(home.self_md, resident.self_md, mode=0o644)
    watched = WatchedWorkspaces(home.memory / "watched_workspaces.json", SystemClock(), town.github_url)
    for full_name in town.workspaces:
        watched.watch(Repo(*full_name.split("/")), requested=full_name != ALMANAC)
    return home


def ask_in_passing(town: Town) -> None:
    """Post a stranger's question to the resident that needs approval to answer it: the visitor gets a draft to decide.

    A second post asks another resident what it knows about the stranger.
    """
    stranger = town.network.create_account(
        passing_by.HANDLE,
        secrets.token_urlsafe(16),
        display_name=passing_by.NAME,
        description="Passing through: one line of the demo.",
    )
    town.network.post_as(stranger.did, _QUESTION)
    town.network.post_as(stranger.did, _ABOUT_THEMSELVES)


@asynccontextmanager
async def _passer_by(town: Town) -> AsyncIterator[None]:
    """Let the same stranger visit the room now and then."""
    visits = passing_by.pass_by(town.space_url, SystemClock(), random.Random(), first_s=PASSES_BY_AFTER_S)
    passing = asyncio.create_task(visits, name="passer-by")
    try:
        yield
    finally:
        passing.cancel()
        with suppress(asyncio.CancelledError):
            await passing


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A SOUL as a child process; its output goes to `life.log` in its home."""

    root: Path
    process: asyncio.subprocess.Process

    def last_words(self) -> str:
        lines = (self.root / "life.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else "it said nothing"


@dataclass(frozen=True, slots=True)
class _Children:
    """The processes started so far, and the pipe that each of them watches: it closes when this process ends."""

    watched: int
    all: list[_Neighbour]


@asynccontextmanager
async def _neighbours() -> AsyncIterator[_Children]:
    """Yield the child processes; at the end, terminate all of them at once, and kill those that do not stop in time."""
    neighbours: list[_Neighbour] = []
    watched, held = os.pipe()
    try:
        yield _Children(watched, neighbours)
    finally:
        living = [item.process for item in neighbours if item.process.returncode is None]
        for process in living:
            process.terminate()
        waits = [asyncio.create_task(process.wait()) for process in living]
        if waits:
            await asyncio.wait(waits, timeout=_STOP_GRACE_S)
        for process in living:
            if process.returncode is None:
                process.kill()
                await process.wait()
        os.close(held)
        os.close(watched)


def environment_of(root: Path) -> dict[str, str]:
    """Return the environment of the resident in `root`: this one without settings, also misspelt ones."""
    settings = {*KNOWN, *(one.name for one in unknown_among(os.environ, prefixes=()))}
    environment = {key: value for key, value in os.environ.items() if not {key, key.upper()} & settings}
    # NOTE(self): so that copies of the program are deleted with the demo.
    return environment | {"XDG_STATE_HOME": str(root.parent)}


async def _start(root: Path, watched: int) -> _Neighbour:
    with (root / "life.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "soul.parent_watch",
            str(watched),
            str(root),
            pass_fds=(watched,),
            env=environment_of(root),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return _Neighbour(root, process)


async def _until(ended: asyncio.Event, seconds: float | None, neighbours: list[_Neighbour]) -> None:
    """Wait until `ended` is set or `seconds` are over. Raises `Fatal` if a SOUL ends before that."""
    asked = asyncio.create_task(ended.wait())
    deaths = {asyncio.create_task(item.process.wait()): item for item in neighbours}
    done, waiting = await asyncio.wait([asked, *deaths], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    for task in done - {asked}:
        gone = deaths[task]
        raise Fatal(f"{gone.root.name} ended with code {gone.process.returncode}: {gone.last_words()}")


def _tell(*lines: str) -> None:
    write_lines("", *(f"  {line}" for line in lines))
