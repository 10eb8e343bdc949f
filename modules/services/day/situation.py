"""The current state of a SOUL: read in one place for the status, the day, the page, alarms and prompts."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.clock import parse_iso
from common.settings import Settings
from common.text.graphemes import shortened
from modules.runtime.budget.policy import Report
from modules.runtime.budget.report import report_at, used_up
from modules.runtime.control import Standing
from modules.runtime.home import Home
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.claims.lease_store import ABANDONED, ASKS, TASK, held_tasks, standing_of
from modules.services.day.rendering import DayTrouble, DayWaits
from modules.services.explanation.drafts import Draft, in_words, leaving_fields
from modules.services.github_threads import THREAD
from modules.services.identity.entries import change_of, see_held
from modules.services.identity.history import held_documents
from modules.services.inbox import messages, received
from modules.services.outbox import store
from modules.services.outbox.approval import held
from modules.services.schedules import Schedule, schedules_in
from modules.services.work.table import count_waiting, newest
from modules.services.work.types import OWNER_LINE, OWNER_MESSAGE, OWNER_TALK

_MOST_TASKS = 100
_FIRST_CHARS, _REASON_CHARS = 60, 80


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a SOUL at one time.

    Attributes:
        standing: whether it may act, and the reasons against it.
        drafts: acts that wait for the owner's approval, oldest first.
        waits: how much waits, of each kind.
        leaving: the acts that wait for longer than a minute, in the form of `leaving_fields`.
        on_the_way: the acts that need no approval and have not left, by due time.
        tasks: the tasks of plans that it holds, `owner/repo#12/task-3`.
        blocked: the tasks of plans that cannot continue by themselves.
        takes_none: why it takes no tasks at all; "" if it may.
        schedules: the schedules, next due first.
        budget: the use of the day's budget.
        documents: its own files with a change that waits for the owner's approval, each with its time.

    """

    standing: Standing
    drafts: tuple[Draft, ...]
    waits: DayWaits
    leaving: tuple[dict[str, Any], ...]
    on_the_way: tuple[Draft, ...]
    tasks: tuple[str, ...]
    blocked: tuple[DayTrouble, ...]
    takes_none: str
    schedules: tuple[Schedule, ...]
    budget: Report
    documents: Mapping[str, str]

    @property
    def no_answer(self) -> str:
        """The reason why the model answers no message of the owner today; "" if it may."""
        return used_up(self.budget)

    @property
    def attention(self) -> AttentionNeeds:
        """The parts of it that a turn needs to know.

        An act may repeat what strangers said, so first words are given only of acts that the owner ordered or approved.
        """
        drafts = (
            Item(f"draft {_brief(one)}", shortened(one.reason, _REASON_CHARS), private=True, waits_as="Draft")
            for one in self.drafts
        )
        changes = (Item(change_of(one), see_held(one), private=True, waits_as="Change") for one in self.documents)
        scheduled = (
            Item(_brief(one), at=parse_iso(one.intent.scheduled_for), private=True)
            for one in self.on_the_way
            if one.intent.scheduled_for
        )
        return AttentionNeeds(
            blocked=(*drafts, *changes),
            scheduled=tuple(scheduled),
            mentions=self.waits.posts,
            leaving=self.waits.acts,
        )


def owner_waiting(connection: sqlite3.Connection) -> int:
    """Return how much that the owner said, in the terminal or by direct message, has no answer yet."""
    return sum(count_waiting(connection, kind) for kind in (OWNER_LINE, OWNER_MESSAGE, OWNER_TALK))


def read_situation(
    connection: sqlite3.Connection, settings: Settings, home: Home, standing: Standing, moment: datetime
) -> Situation:
    """Return the state of the SOUL of `settings`; `standing` comes from its `Control`."""
    drafts, documents, states = held(connection), held_documents(home), store.counts(connection)
    owner = settings.owner_bluesky_social_handle_did
    waits = DayWaits(
        drafts=len(drafts) + len(documents),
        posts=received.count_waiting(connection),
        threads=count_waiting(connection, THREAD),
        messages=sum(one.author_did != owner for one in messages.waiting(connection)),
        owner_messages=owner_waiting(connection),
        tasks=sum(count_waiting(connection, TASK, outcome) for outcome in (ABANDONED, ASKS)),
        acts=states.get("pending", 0) + states.get("sending", 0),
    )
    return Situation(
        standing,
        tuple(in_words(connection, drafts)),
        waits,
        tuple(leaving_fields(connection)),
        tuple(in_words(connection, store.on_the_way(connection))),
        tuple(held_tasks(connection)),
        tuple(_blocked_tasks(connection)),
        takes_no_tasks(settings),
        tuple(schedules_in(connection)),
        report_at(connection, settings, moment),
        documents,
    )


def takes_no_tasks(settings: Settings) -> str:
    """Return why a SOUL with these settings takes no tasks of plans; "" if they let it."""
    return "" if settings.soul_coding else "SOUL_CODING is off: it takes no tasks of plans"


def _brief(draft: Draft) -> str:
    """Return the number and kind of an act, the post that it answers, and its first words if the owner ordered it."""
    intent = draft.intent
    ours = shortened(draft.words.ours, _FIRST_CHARS) if intent.by_owner else ""
    answers = f" (post_uri {intent.target})" if intent.kind == "reply" else ""
    return f"{draft.number}, {draft.words.what}{answers}" + (f": “{ours}”" if ours else "")


def _blocked_tasks(connection: sqlite3.Connection) -> Iterable[DayTrouble]:
    for item in newest(connection, TASK, _MOST_TASKS, key_prefix=""):
        what, standing = f"The task {item.key}", standing_of(item)
        if item.state == "pending" and item.outcome == ASKS:
            yield DayTrouble(f"{what} asks a question on its plan", 1, "answer on its plan; `soul tasks` shows it")
        elif item.state == "pending" and item.outcome == ABANDONED:
            yield DayTrouble(f"{what} failed too often and waits for you", 1, f"`/task {item.key}` tries it again")
        elif standing.status == "blocked" and standing.is_open:
            yield DayTrouble(f"{what} is blocked", 1, "`soul tasks` shows it; its plan tells why")
