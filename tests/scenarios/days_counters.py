"""Counts what the rules of etiquette limit, over sliding windows of network records and over the ledger.

It uses neither the code nor the numbers of the rules.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.atproto.records import FOLLOW, LIKE, POST, REPOST
from common.clock import parse_iso
from tests.scenarios.days_audit import Days, author_of, moment
from tests.scenarios.days_events import Events
from tests.scenarios.days_town import strangers_day

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
_POINTS = 3
"""The points that one record costs."""

Moments = Sequence[tuple[datetime, str]]


@dataclass(frozen=True)
class Counters:
    """Counts what the SOULs of the days did."""

    days: Days
    events: Events

    def strangers_an_hour(self, names: Collection[str]) -> int:
        """Return the most people, neither owner nor SOUL, who got a reply of one of these SOULs within an hour."""
        return max(
            most([event for event in self._replies(name) if self.days.is_stranger(event[1])], HOUR, distinct=True)
            for name in names
        )

    def replies_to_one(self, window: timedelta) -> int:
        """Return the most replies of one SOUL within a window to one account, neither the owner's nor a SOUL's."""
        return max(
            most([event for event in self._replies(name) if event[1] == person], window, distinct=False)
            for name in self.days.town.souls
            for person in {person for _, person in self._replies(name) if self.days.is_stranger(person)}
        )

    def replies_to_peer(self, window: timedelta) -> int:
        """Return the most replies of one SOUL to another, within a window."""
        return max(
            most([event for event in self._replies(name) if event[1] == peer.did], window, distinct=False)
            for name in self.days.town.souls
            for peer in self.days.town.souls.values()
        )

    def same_words_a_day(self) -> int:
        """Return the most replies of one SOUL with the same letters within a day, without names and links."""
        return max(
            most(times, DAY, distinct=False)
            for name in self.days.town.souls
            for times in self._replies_by_words(name).values()
        )

    def own_posts_a_day(self) -> int:
        """Return the most posts of its own that a SOUL wrote on one calendar day."""
        return max(
            len([post for post in self.days.own_posts(name) if moment(post).date() == date])
            for name in self.days.town.souls
            for date in {moment(post).date() for post in self.days.own_posts(name)}
        )

    def logins_a_day(self) -> int:
        """Return the most sessions that one account requested with its password within a day."""
        return max(most([(at, "") for at in times], DAY, distinct=False) for times in self.days.town.logins.at.values())

    def points(self, window: timedelta) -> int:
        """Return the most points within a window for the records that one SOUL still has on the network."""
        return max(
            _POINTS
            * most(
                sorted(
                    (parse_iso(str(record.value["createdAt"])), record.uri)
                    for collection in (POST, LIKE, FOLLOW, REPOST)
                    for record in self.days.town.network.records(soul.did, collection)
                ),
                window,
                distinct=False,
            )
            for soul in self.days.town.souls.values()
        )

    def messages_to_one(self, window: timedelta) -> int:
        """Return the most direct messages of one SOUL to one account that is not the owner's, within a window."""
        return max(
            most(self.events.answers(author, soul), window, distinct=False)
            for author, soul in {(one.author, one.soul) for one in self.events.written if one.author != "owner"}
        )

    def strangers_share(self, name: str, *, without_last: bool = False) -> int:
        """Return the most tokens that strangers together used on one day of a SOUL."""
        return strangers_day(self.days.town.souls[name].calls.values(), without_last=without_last)

    def _replies(self, name: str) -> list[tuple[datetime, str]]:
        """Return the time and the addressee of each reply of a SOUL, oldest first."""
        return [(moment(post), author_of(post.reply.parent.uri)) for post in self.days.own(name) if post.reply]

    def _replies_by_words(self, name: str) -> Mapping[str, Moments]:
        found: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list, {"": []})
        for post in self.days.own(name):
            if post.reply:
                found[_letters(post.text)].append((moment(post), post.uri))
        return found


def most(events: Moments, window: timedelta, *, distinct: bool) -> int:
    """Return the most events, or distinct names of events, in any window; `events` are oldest first."""
    best, first = 0, 0
    for last, (at, _) in enumerate(events):
        while events[first][0] <= at - window:
            first += 1
        names = [name for _, name in events[first : last + 1]]
        best = max(best, len(set(names) if distinct else names))
    return best


def figures(days: Days, counters: Counters, young: Collection[str], old: Collection[str]) -> str:
    """Return the text that `make test-days` prints."""
    town, people, events = days.town, days.people, counters.events
    souls, talks = town.souls, {(one.author, one.soul) for one in events.written}
    own = [post for name in souls for post in days.own(name)]
    lived = {
        "days": days.days,
        "SOULs": len(souls),
        "starts": sum(soul.starts for soul in souls.values()),
        "posts to them": len(people.asked),
        "replies": sum(1 for post in own if post.reply),
        "likes": sum(len(town.network.records(soul.did, LIKE)) for soul in souls.values()),
        "posts of their own": sum(len(days.own_posts(name)) for name in souls),
        "pictures": len(days.pictures()),
        "talks begun by message": len(events.written),
        "messages of theirs": sum(len(events.answers(author, soul)) for author, soul in talks),
        "prompts": town.mind.prompts.count,
        "texts denied to models": len(people.denied),
        "prompts that hold one": len(days.denied_in_prompts()),
    }
    most_of = {
        "SOULs after one another": days.longest_run(),
        "strangers an hour, young": counters.strangers_an_hour(young),
        "strangers an hour, old": counters.strangers_an_hour(old),
        "replies to one person an hour": counters.replies_to_one(HOUR),
        "replies to one person a day": counters.replies_to_one(DAY),
        "replies to one SOUL an hour": counters.replies_to_peer(HOUR),
        "replies to one SOUL a day": counters.replies_to_peer(DAY),
        "same words a day": counters.same_words_a_day(),
        "thoughts a day": counters.own_posts_a_day(),
        "logins a day": counters.logins_a_day(),
        "messages to one person an hour": counters.messages_to_one(HOUR),
        "messages to one person a day": counters.messages_to_one(DAY),
        "points an hour": counters.points(HOUR),
        "points a day": counters.points(DAY),
        "tokens of strangers a day": {name: counters.strangers_share(name) for name in souls},
    }
    return "\n".join(
        f"{title}: {', '.join(f'{name} {value}' for name, value in told.items())}"
        for title, told in (("lived", lived), ("at most", most_of), ("the model wanted", town.mind.wanted))
    )


def _letters(text: str) -> str:
    """Return the letters of a text in lower case, without names and links."""
    return "".join(re.findall(r"[^\W\d_]", re.sub(r"@\S+|https?://\S+", " ", text.lower())))
