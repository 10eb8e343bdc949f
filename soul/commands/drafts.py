"""`soul drafts`: lists and decides what waits for approval or for its time, whether the SOUL is awake or not."""

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from adapters.atproto.records import web_url
from common.clock import SystemClock
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.errors import UsageError
from common.files import write_atomic
from common.redact import Redactor
from common.settings import Settings
from common.text.untrusted import one_line
from common.wording import deed
from modules.lives.bluesky.publish import text_problem
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.services.commitments.naming import QueuedCommitment, title_of
from modules.services.explanation.drafts import Draft, draft_fields, in_words
from modules.services.identity.entries import waiting_line
from modules.services.identity.history import held_documents
from modules.services.outbox import approval
from modules.services.outbox.approval import editable_text, leaving
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.gates import SecretScan
from modules.services.outbox.github_bodies import GITHUB_KINDS
from modules.services.outbox.rules.etiquette import same_reply
from modules.services.outbox.types import ProposedAction, Rule, Verdict
from soul.commands.at_hand import at_hand
from soul.commands.beside import journal_beside
from soul.commands.config import edited_by_owner
from soul.commands.options import DraftAction, DraftIds
from soul.commands.self_ import decide_held, is_document, show_held
from soul.terminal.output import Colour, write_coloured, write_json, write_lines
from soul.terminal.wording import moment

_TITLE_CHARS = 80
_DONE = {
    DraftAction.APPROVE: "Approved",
    DraftAction.EDIT: "Edited and approved",
    DraftAction.REJECT: "Rejected",
}


def run_drafts(
    root: Path,
    action: Annotated[
        DraftAction, typer.Argument(metavar="ACTION", help="The action; edit also approves.")
    ] = DraftAction.LIST,
    ids: DraftIds = None,
    *,
    reason: Annotated[str, typer.Option("--reason", help="With reject: why; your SOUL is told.")] = "",
    text: Annotated[
        str | None,
        typer.Option("--text", help="With edit: the new text; else your editor opens."),
    ] = None,
    in_pager: Annotated[bool, typer.Option("--pager", help="With show: open $PAGER.")] = False,
    as_json: bool,
) -> None:
    """Show or decide drafts; to edit one, give its new `text`, or None to open it in the owner's editor.

    Raises `NotWaiting`, before anything is decided, if one of `ids` does not wait.
    """
    owned = {"--text": DraftAction.EDIT, "--reason": DraftAction.REJECT, "--pager": DraftAction.SHOW}
    for option, given in zip(owned, (text is not None, bool(reason), in_pager), strict=True):
        if given and action is not owned[option]:
            raise UsageError(
                f"`soul drafts {action}` takes no {option}", remedy=f"It belongs to `soul drafts {owned[option]} ID`."
            )
    if action is not DraftAction.LIST and not ids:
        raise UsageError(f"Which draft? `soul drafts {action} ID`", remedy="`soul drafts` shows what waits.")
    settings, home = at_hand(root)
    documents, ids = documents_among(ids or [])
    if documents:
        _answer_documents(root, action, documents, ids, reason, as_json=as_json)
        return
    if action in {DraftAction.LIST, DraftAction.SHOW}:
        with reading(home.database) as connection:
            intents = [approval.find(connection, given) for given in ids] if ids else approval.waiting(connection)
            drafts = in_words(connection, intents)
        _show(drafts, settings, home, json_wanted=as_json, full=action is DraftAction.SHOW, in_pager=in_pager)
        return
    if action is DraftAction.EDIT:
        decided = [_edit(settings, home, ids, text)]
    else:
        decided = asyncio.run(decide(settings, home, action, ids, reason))
    if as_json:
        _show(decided, settings, home, json_wanted=True, full=False)
        return
    for draft in decided:
        write_lines(f"{_DONE[action]} {draft.intent.id}: {draft.words.line}")
    if action is not DraftAction.REJECT:
        write_lines(leaving_of(settings, home, decided))


def _answer_documents(
    root: Path, action: DraftAction, documents: Sequence[str], beside: Sequence[str], reason: str, *, as_json: bool
) -> None:
    settings, home = at_hand(root)
    if beside or action is DraftAction.EDIT:
        remedy = "Approve or reject each file by itself; edit it after that."
        raise UsageError(f"{documents[0]} is a file, and no draft of an act", remedy=remedy)
    for document in documents:
        if action is DraftAction.SHOW:
            show_held(home, document, settings.soul_timezone, as_json=as_json)
        else:
            line = decide_held(settings, home, document, approve=action is DraftAction.APPROVE, reason=reason)
            write_lines(asyncio.run(line))


def documents_among(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names of documents, such as SELF.md, among what the owner typed, and the rest."""
    return [one for one in given if is_document(one)], [one for one in given if not is_document(one)]


def leaving_of(settings: Settings, home: Home, approved: Sequence[Draft]) -> str:
    """Return a line on when drafts that were approved outside the running SOUL leave."""
    standing, is_awake = Control(home.memory).standing(), lock_holder(home) is not None
    acts, now = [draft.intent for draft in approved], SystemClock().now()
    return leaving(acts, standing, settings.soul_timezone, is_awake=is_awake, now=now)


async def decide(settings: Settings, home: Home, action: DraftAction, ids: Sequence[str], reason: str) -> list[Draft]:
    """Approve or reject what waits under `ids`, all or none. Raises `NotWaiting`."""
    clock = SystemClock()
    async with journal_beside(settings, home, clock) as (database, journal):
        if action is DraftAction.APPROVE:
            acts = await journal.record_all_with(lambda rows: approval.approve(rows, ids, clock.now()))
        else:
            acts = await journal.record_all_with(lambda rows: approval.reject(rows, ids, reason, clock.now()))
        return await database.run(lambda connection: in_words(connection, acts))


def _edit(settings: Settings, home: Home, ids: Sequence[str], text: str | None) -> Draft:
    if len(ids) != 1:
        raise UsageError("One draft is edited at a time", remedy="`soul drafts edit ID`")
    if text is None:
        with reading(home.database) as connection:
            before = editable_text(approval.find(connection, ids[0]).body)
        with tempfile.TemporaryDirectory(prefix="soul-draft-") as folder:
            copy = Path(folder) / "draft.txt"
            write_atomic(copy, before)
            text = edited_by_owner(copy).decode(errors="replace")
        if text.strip() == before.strip():
            raise UsageError(
                "Nothing was changed: the draft still waits", remedy="`soul drafts approve ID` approves it."
            )
    return asyncio.run(edit(settings, home, ids[0], text))


def plain_lines(text: str) -> str:
    """Return the owner's text for a draft as it is stored: stripped, with uniform line ends."""
    return "\n".join(text.splitlines()).strip()


def word_rules(redactor: Redactor) -> tuple[Rule, ...]:
    """Return the rules that the owner's text for a draft must pass."""
    return (SecretScan(redactor), same_reply, _fits)


def _fits(_: sqlite3.Connection, action: ProposedAction, __: datetime) -> Sequence[Verdict]:
    """Block a text that Bluesky does not take; a direct message may be longer than a post. GitHub takes long ones."""
    if action.kind in GITHUB_KINDS:
        return [] if editable_text(action.body) else [Verdict("length", "block", "no text")]
    most = MESSAGE_MAX_GRAPHEMES if action.kind == "direct_message" else PORTABLE_MAX_GRAPHEMES
    problem = text_problem(action.body.short_preview, most)
    return [Verdict("length", "block", problem.reason)] if problem else []


async def edit(settings: Settings, home: Home, given: str, text: str) -> Draft:
    """Replace the text of a draft by the owner's, and approve it. Raises the same errors as `approval.edit`."""
    text, clock, rules = plain_lines(text), SystemClock(), word_rules(Redactor(settings.secrets))
    async with journal_beside(settings, home, clock) as (database, journal):
        edited = await journal.record_with(lambda rows: approval.edit(rows, given, text, rules, clock.now()))
        return (await database.run(lambda connection: in_words(connection, [edited])))[0]


def _show(
    drafts: Sequence[Draft], settings: Settings, home: Home, *, json_wanted: bool, full: bool, in_pager: bool = False
) -> None:
    now, timezone = SystemClock().now(), settings.soul_timezone
    if json_wanted:
        listed = [draft_fields(draft, now) for draft in drafts]
        write_json(listed)
    elif full:
        lines = [line for draft in drafts for line in full_lines(draft, now, timezone)]
        write_coloured(with_colours(lines), in_pager=in_pager)
    else:
        write_lines(*list_lines(drafts, now, timezone, held_documents(home)))
        if drafts:
            write_lines(
                "`soul drafts approve ID…`, `edit ID` or `reject ID…`; `show ID` tells all of it"
                " (ID: its number, or 4 characters of it)"
            )


_CHANGES = "\ndiff --git "
_COLOURS: dict[str, Colour] = {"+": "green", "-": "red", "@": "cyan"}


def list_lines(
    drafts: Sequence[Draft],
    now: datetime,
    timezone: str,
    documents: Iterable[str],
    commitments: Mapping[int, QueuedCommitment] = MappingProxyType({}),
) -> list[str]:
    """Return a line for each draft and each of `commitments`, with its number, and for each changed document."""
    promised = (
        f"{number:>3}  {deed(one.type)}, a commitment: {one_line(title_of(one), _TITLE_CHARS)}  (reject withdraws it)"
        for number, one in commitments.items()
    )
    lines = [*(_line(draft, now, timezone) for draft in drafts), *promised, *map(waiting_line, documents)]
    return lines or ["Nothing waits for your approval"]


def full_lines(draft: Draft, now: datetime, timezone: str) -> list[str]:
    """Return everything to know before deciding on a draft; the text that it answers stands before its own."""
    intent = draft.intent
    lines = [
        f"{draft.words.what}  {intent.id}",
        *([f"  waits because {draft.reason}"] if draft.reason else []),
        f"  since {moment(intent.created_at, timezone)}, {draft.when(now, timezone)}",
    ]
    if draft.words.theirs:
        lines.append(f"  {f'@{draft.words.author}' if draft.words.author else 'the SOUL'} wrote:")
        lines += [f"           {line}" for line in draft.words.theirs.splitlines()]
    if intent.target:
        lines.append(f"  at     {web_url(intent.target) or intent.target}")
    if intent.cause_id and intent.cause_id != intent.target:
        lines.append(f"  cause  {intent.cause_id}")
    lines += (f"  {line}" for line in draft.rests_on)
    if text := intent.body.preview:
        lines += ["", *(f"  {line}" for line in text.splitlines())]
    return lines


def split_changes(text: str) -> tuple[str, list[str]]:
    """Return the description of an act, and the lines of the diff that it shows, empty if it shows none."""
    told, begins, rest = text.partition(_CHANGES)
    return told.rstrip(), f"{begins}{rest}".strip().split("\n") if begins else []


def with_colours(lines: Iterable[str]) -> Iterator[tuple[str, Colour | None]]:
    """Yield each line of `full_lines` with its colour, which only the added, deleted and `@` lines of a diff have."""
    is_changes = False
    for line in lines:
        is_changes = is_changes or line.startswith(f"  {_CHANGES.strip()} ")
        yield line, _COLOURS.get(line[2:3]) if is_changes else None


def _line(draft: Draft, now: datetime, timezone: str) -> str:
    act, why = draft.words.with_theirs, draft.reason or "reject stops it"
    return f"{draft.number or '':>3}  {draft.intent.id[:SHORT_ID_CHARS]}  {act}  ({draft.when(now, timezone)}; {why})"
