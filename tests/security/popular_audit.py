"""Counts once more, from what was sent and from the crowd's own books, what manners should have held.

Nothing here uses the rules' code: sliding windows over lists, and a plain comparison of letters.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from modules.services.outbox.types import Intent
from tests.security.popular_soul import ReceivedPost, root_of

T = TypeVar("T")
Departure = tuple[datetime, Intent]

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ALIKE = 0.97
SPECIAL = {"did:plc:owner", "did:plc:peer"}


def worst(events: Sequence[tuple[datetime, T]], window: timedelta, measure: Callable[[list[T]], float]) -> float:
    """The most that any window holds; `events` oldest first."""
    most, first = 0.0, 0
    for last, (moment, _) in enumerate(events):
        while events[first][0] <= moment - window:
            first += 1
        most = max(most, measure([event for _, event in events[first : last + 1]]))
    return most


def author(intent: Intent) -> str:
    return intent.target.split("/")[2]


def replies(departures: Iterable[Departure]) -> list[Departure]:
    return [(moment, intent) for moment, intent in departures if intent.kind == "reply"]


def most_points(departures: Sequence[Departure], window: timedelta) -> float:
    return worst(departures, window, lambda left: sum(1 if intent.kind == "delete" else 3 for intent in left))


def most_strangers(departures: Sequence[Departure]) -> float:
    to = [(moment, author(intent)) for moment, intent in replies(departures) if author(intent) not in SPECIAL]
    return worst(to, HOUR, lambda whom: len(set(whom)))


def most_of_the_same_words(departures: Sequence[Departure]) -> float:
    by_words: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for moment, intent in replies(departures):
        by_words[bare(intent.body.public_text)].append((moment, intent.id))
    return max((worst(events, DAY, len) for events in by_words.values()), default=0.0)


def bare(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", re.sub(r"@\S+|https?://\S+", " ", text.lower())))


def repeated_answers(departures: Sequence[Departure], received: Sequence[ReceivedPost]) -> list[tuple[str, str]]:
    """Pairs of near-identical posts of one author, not the owner, that were both answered within a day."""
    texts = {one.post.uri: bare(one.post.text) for one in received}
    by_author: dict[str, list[Departure]] = defaultdict(list)
    for moment, intent in replies(departures):
        if author(intent) != "did:plc:owner":
            by_author[author(intent)].append((moment, intent))
    found = []
    for left in by_author.values():
        for number, (later, second) in enumerate(left):
            for _, first in (one for one in left[:number] if later - one[0] < DAY):
                one, other = texts.get(first.target, ""), texts.get(second.target, "")
                matcher = difflib.SequenceMatcher(None, one, other)
                if one and matcher.quick_ratio() > ALIKE and matcher.ratio() > ALIKE:
                    found.append((one, other))
    return found


def longest_run_in_a_thread(departures: Sequence[Departure], received: Sequence[ReceivedPost]) -> int:
    """The most automated turns up to one of our replies, each standing where it was decided.

    A person's turn starts the count afresh, and so does our answer to it, however late it comes.
    """
    persons = {one.post.uri for one in received if not one.is_bot}
    threads: dict[str, list[tuple[datetime, int, bool]]] = defaultdict(list)
    for one in received:
        threads[one.post.root.uri].append((one.at, 0, one.is_bot))
    for _, intent in replies(departures):
        at, to_person = datetime.fromisoformat(intent.created_at), intent.target in persons
        threads[root_of(intent)].append((at, 1, not to_person))
    longest = 0
    for turns in threads.values():
        run = 0
        for _, ours, automated in sorted(turns):
            run = run + 1 if automated else 0
            longest = max(longest, run if ours else 0)
    return longest


def most_replies_to_one_bot(departures: Sequence[Departure]) -> float:
    """In any day. Each answers a turn of the bot's own, so five are all that a limit of six turns leaves room for."""
    by_bot: dict[str, list[Departure]] = defaultdict(list)
    for moment, intent in replies(departures):
        if author(intent).startswith("did:plc:bot"):
            by_bot[author(intent)].append((moment, intent))
    return max((worst(left, DAY, len) for left in by_bot.values()), default=0.0)


def likes_out_of_silence(departures: Sequence[Departure], received: Sequence[ReceivedPost]) -> int:
    """Likes for a bot that had, with us, taken twelve turns or more within the day before.

    An act may bear a time some milliseconds late, since no two bear the same: what was heard in the same instant, but
    after the post that it answers, had not been heard when it was decided.
    """
    order = {one.post.uri: number for number, one in enumerate(received)}
    spoken: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
    for number, one in enumerate(received):
        if one.is_bot:
            spoken[one.post.author.did].append((one.at, number))
    for _, intent in replies(departures):
        if author(intent) in spoken:
            spoken[author(intent)].append((datetime.fromisoformat(intent.created_at), order[intent.target]))
    broken = 0
    for _, intent in departures:
        if intent.kind != "like" or intent.target not in order:
            continue
        decided, met = datetime.fromisoformat(intent.created_at), order[intent.target]
        turns = [
            number
            for moment, number in spoken.get(author(intent), ())
            if decided - DAY < moment < decided and not (number > met and moment == received[met].at)
        ]
        broken += len(turns) >= 12
    return broken


def uninvited(
    departures: Sequence[Departure], received: Sequence[ReceivedPost], followers: frozenset[str]
) -> list[Intent]:
    """Acts that notified somebody who had given no reason."""
    reached, spoke = {one.post.uri for one in received}, {one.post.author.handle for one in received}
    found = []
    for _, intent in departures:
        named = set(re.findall(r"@([\w.-]+\w)", intent.body.public_text))
        if intent.kind in {"reply", "like", "repost"}:
            welcome = intent.target in reached or author(intent) in SPECIAL
        else:
            welcome = intent.kind == "post" or intent.target in followers
        if not welcome or not named <= spoke | {"owner.example"}:
            found.append(intent)
    return found
