"""`soul talks`: shows the owner open and archived conversations; the SOUL may be awake."""

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.atproto.records import web_url
from adapters.storage.local import Storage
from common.clock import iso
from common.errors import SoulError, UsageError
from common.redact import Redactor
from common.result import Err
from common.session_keys import OWNER_SESSION, is_main
from common.settings import Settings
from common.text.untrusted import one_line
from common.wording import counted, number, purpose
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Block, Image, Text, ToolAnswer, ToolCall
from modules.runtime.watched_storage import storage_of
from modules.services.inbox import received
from modules.services.sessions import talks
from modules.services.sessions.archives import read_archive
from modules.services.sessions.talks import KeptTalk, Stretch
from modules.services.sessions.types import ArchivedLine, Session, blocks, to_fields, words_of
from soul.commands.at_hand import at_hand
from soul.commands.options import TalkAction
from soul.terminal.output import printable, write_answer, write_json, write_lines
from soul.terminal.wording import moment

_DEADLINE_S = 20.0
_SECOND_MS = 1000
_STATES = {"goes on": "goes on", "archived": "archived", "waits": "waits for the store"}
_THREAD = "bluesky:thread:"
_ROOM = "space:"
_WITH_MOST = 3


def run_talks(
    root: Path,
    action: Annotated[TalkAction, typer.Argument(help="The action.", metavar="ACTION")] = TalkAction.LIST,
    given: Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first characters of it.")] = "",
    *,
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1)] = 20,
    as_json: bool,
) -> bool:
    """Print the conversations, or one of them whole; return whether all of it could be read.

    Raises `SoulError` if there is none, or some of it cannot be read; as JSON, the latter is told by the fields `error`
    and `remedy` instead.
    """
    if action is TalkAction.SHOW and not given:
        raise UsageError("Which conversation? `soul talks show ID`", remedy="`soul talks` shows them.")
    settings, home = at_hand(root)
    if action is TalkAction.LIST:
        listed, names = asyncio.run(_listed(home, limit))
        write_answer([_facts(talk) for talk in listed], _list_lines(listed, names, settings), as_json=as_json)
        return True
    session, name, found, troubles = asyncio.run(_read(settings, home, given))
    failure = _failure(found, troubles)
    if as_json:
        said = {"session": session.id, "key": session.key, "stretches": [_whole(each) for each in found]}
        trouble = {"error": Redactor().text(str(failure)), "remedy": failure.remedy} if failure else {}
        write_json(said | trouble)
        return failure is None
    write_lines(f"{session.id}  {name}", *_show_lines(found, settings))
    if failure:
        raise failure
    return True


def _failure(found: Sequence[Stretch], troubles: Sequence[str]) -> SoulError | None:
    if not troubles:
        return None
    missing = sum(stretch.talk.messages for stretch in found if stretch.lines is None)
    remedy = "Check STORAGE_URL and its credentials, and try again."
    return SoulError(f"{counted(missing, 'message')} cannot be read: {troubles[0]}", remedy=remedy)


async def _listed(home: Home, limit: int) -> tuple[list[KeptTalk], dict[str, str]]:
    """Return the newest conversations, and the name of each by its key."""
    async with await Database.beside(home.database) as database:
        return await database.read(lambda connection: _named(connection, limit))


def _named(connection: sqlite3.Connection, limit: int) -> tuple[list[KeptTalk], dict[str, str]]:
    listed = talks.listed(connection, limit)
    return listed, {key: talk_name(connection, key) for key in {talk.session_key for talk in listed}}


async def _read(settings: Settings, home: Home, given: str) -> tuple[Session, str, list[Stretch], list[str]]:
    """Return a conversation, its name, as much of it as can be read, and why the rest cannot."""
    storage = storage_of(settings, home.store, deadline_s=_DEADLINE_S)
    async with await Database.beside(home.database) as database:
        try:
            session, name, found = await database.read(lambda connection: _found(connection, given))
            return session, name, *(await _fetched(found, storage))
        finally:
            await storage.aclose()


def _found(connection: sqlite3.Connection, given: str) -> tuple[Session, str, list[Stretch]]:
    session = talks.find(connection, given)
    return session, talk_name(connection, session.key), talks.stretches(connection, session)


async def _fetched(found: Sequence[Stretch], storage: Storage) -> tuple[list[Stretch], list[str]]:
    whole, troubles = [], []
    for stretch in found:
        archive = stretch.talk.archive
        if stretch.lines is not None or archive is None:
            whole.append(stretch)
            continue
        read = await read_archive(storage, archive)
        if isinstance(read, Err):
            troubles.append(read.error)
            whole.append(stretch)
        else:
            whole.append(Stretch(stretch.talk, tuple(read.data)))
    return whole, troubles


def _list_lines(listed: Sequence[KeptTalk], names: Mapping[str, str], settings: Settings) -> Iterator[str]:
    if not listed:
        yield "Nothing was said yet"
        return
    for talk in listed:
        tokens = f"{number(talk.tokens):>10} tokens" if talk.tokens is not None else " " * 17
        what = names[talk.session_key] + (f", part {talk.part}" if talk.part else "")
        begins = f"{talk.session_id}  {moment(talk.at, settings.soul_timezone)}  {_STATES[talk.state]:<19}"
        yield f"{begins}  {number(talk.messages):>5} messages  {tokens}  {what}"
    yield "`soul talks show ID` for what was said (the first characters of an ID will do)"


def _show_lines(found: Sequence[Stretch], settings: Settings) -> Iterator[str]:
    before = ""
    for stretch in found:
        talk = stretch.talk
        yield ""
        part = f"Part {talk.part}, " if talk.part else ""
        messages = counted(talk.messages, "message")
        yield f"{part}{messages}, {_STATES[talk.state]} ({moment(talk.at, settings.soul_timezone)})"
        if stretch.lines is None:
            yield "  cannot be read now"
        for line in stretch.lines or ():
            said = [words for block in blocks(line.message) for words in told_block(block).splitlines()] or [""]
            who = "SUMMARY" if before and "\n".join(said) == before else who_said(line, talk)
            yield f"  {moment(said_at(line), settings.soul_timezone)}  {who}: {said[0]}"
            yield from (f"    {words}" for words in said[1:])
        before = "\n".join(talk.archive.distilled.message.splitlines()) if talk.archive else ""


def who_said(line: ArchivedLine, talk: KeptTalk) -> str:
    """Return the label of who said a line: SOUL, OWNER, THEM or TOOL with its name."""
    match line.role, blocks(line.message):
        case "assistant", _:
            return "SOUL"
        case "toolResult", (ToolAnswer(_, name), *_):
            return f"TOOL {printable(name)}"
    return "OWNER" if is_main(talk.session_key) else "THEM"


def told_block(block: Block) -> str:
    """Return a part of a line in words."""
    match block:
        case ToolCall():
            return f"uses {words_of(block)}"
        case Image(alt=alt):
            return f"[picture: {alt}]" if alt else "[picture]"
        case Text() | ToolAnswer():
            return words_of(block)


def _facts(talk: KeptTalk) -> dict[str, Any]:
    return {
        "session": talk.session_id,
        "key": talk.session_key,
        "state": talk.state,
        "at": talk.at,
        "messages": talk.messages,
        "tokens": talk.tokens,
        "part": talk.part,
        "archive": talk.archive.key if talk.archive else None,
    }


def _whole(stretch: Stretch) -> dict[str, Any]:
    """Return the fields of a stretch, with what was said, or None if that cannot be read."""
    said = None
    if stretch.lines is not None:
        said = [
            {"role": line.role, "at": iso(said_at(line)), **to_fields(line.role, line.message)}
            for line in stretch.lines
        ]
    return {**_facts(stretch.talk), "said": said}


def said_at(line: ArchivedLine) -> datetime:
    """Return when a line was said."""
    return datetime.fromtimestamp(line.timestamp / _SECOND_MS, UTC)


def talk_name(connection: sqlite3.Connection, key: str) -> str:
    """Return with whom, or about what, the conversation `key` is; the key if nothing better is known."""
    if key == OWNER_SESSION:
        return "you, in the terminal"
    if key.startswith(_THREAD):
        root = key.removeprefix(_THREAD)
        handles = [*dict.fromkeys(one_line(one.handle) for one in received.in_thread(connection, root) if one.handle)]
        if handles:
            others = " and others" if len(handles) > _WITH_MOST else ""
            return f"a thread on Bluesky with {', '.join(f'@{handle}' for handle in handles[:_WITH_MOST])}{others}"
        return f"a thread on Bluesky, {web_url(root) or root}"
    if key.startswith(_ROOM):
        return "the room"
    return purpose(key)
