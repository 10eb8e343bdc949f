"""The summary of one day of a SOUL as values, rows, and lines for a terminal of eighty columns. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from adapters.atproto.records import web_url
from common.clock import local, parse_iso
from common.text.graphemes import shortened
from common.text.markdown import as_prose
from common.text.untrusted import clean, one_line
from common.wording import counted, cut_off, deed, number, set_aside, told_reason, waiting_text, wrapped
from modules.services.inbox.messages import MESSAGES
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.policy import Lane
from modules.services.outbox.types import STANDS, Outcome

LIKED_ONLY = "liked"
"""The outcome of items that were liked and not answered."""


@dataclass(frozen=True, slots=True)
class DayReason:
    """The reason why posts, threads and messages were only liked or left alone: `act` and `reason` as in the journal.

    `who` are the handles of their authors, each once. `is_chosen` says that the model chose it; then the reason is that
    of the newest, as it is hardly ever the same twice.
    """

    act: str
    reason: str
    count: int
    who: tuple[str, ...]
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class DayOrder:
    """An act that the owner ordered, approved or stopped: what it is, its first words, and its outcome.

    `reason` says why it was not done (`is_others` as in `DayRefusal`), `when` when it leaves if it has to wait.
    """

    what: str
    words: str
    outcome: Outcome
    reason: str
    was_ordered: bool
    when: str = ""
    is_others: bool = False


@dataclass(frozen=True, slots=True)
class DayRefusal:
    """An act that did not leave as intended, why, and how often; `is_others`: the reason may hold words of others."""

    what: str
    reason: str
    count: int
    is_others: bool = True


@dataclass(frozen=True, slots=True)
class TellingCase:
    """One decision as in the journal. `uri` is the address that it was about."""

    at: str
    act: str
    summary: str
    reason: str
    uri: str


@dataclass(frozen=True, slots=True)
class DayWaits:
    """The numbers of what waits now: drafts for approval, acts for their turn, and the rest for an answer.

    `tasks` are those that failed too often or ask a question on their plan.
    """

    drafts: int
    posts: int
    threads: int
    messages: int
    owner_messages: int
    tasks: int
    acts: int


@dataclass(frozen=True, slots=True)
class DayCommitments:
    """The titles of open commitments, and of those kept or given up on the day."""

    open: tuple[str, ...]
    kept: tuple[str, ...]
    given_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DayLearned:
    """The number of memories saved or refreshed, subjects of the newest, why SELF.md changed, and approved skills.

    `is_others`: some of these subjects rest on words of others.
    """

    memories: int
    subjects: tuple[str, ...]
    self_changes: tuple[str, ...]
    is_others: bool
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DayReading:
    """A question that was looked up, at the owner's request if `owners`; `finding` is "" if nothing was kept.

    `sources` are links, `post` links to the post about it.
    """

    at: str
    question: str
    finding: str
    sources: Sequence[str]
    owners: bool
    post: str


@dataclass(frozen=True, slots=True)
class DaySpent:
    """The day's budget in tokens and dollars; a cap is None if there is none, `tokens_set_aside` are not spent yet.

    `tokens_unanswered` are the most that calls without an answer can have cost; they are part of `tokens`. `usd` is
    None if a price is unknown; `fraction` is None for a past day, as the caps may have changed.
    """

    calls: int
    tokens: float
    tokens_cap: float | None
    usd: float | None
    usd_cap: float | None
    fraction: float | None
    tokens_set_aside: float = 0
    tokens_unanswered: float = 0


@dataclass(frozen=True, slots=True)
class DayTrouble:
    """Something wrong, how often, and what the owner can do about it; `is_others` as in `DayRefusal`."""

    what: str
    count: int
    remedy: str
    is_others: bool = False


@dataclass(frozen=True, slots=True)
class PublicDay:
    """The public figures of a day: the number of public acts of each kind, and of messages in rooms."""

    done: dict[Lane, int]
    room_words: int


@dataclass(frozen=True, slots=True)
class DaySummary:
    """One local day.

    Attributes:
        name: of the SOUL.
        day: `2026-01-31`.
        timezone: the time zone of the day, "" for the machine's.
        is_today: whether it is today; `waits`, open commitments and `tasks` are always the current ones.
        awake: whether a process holds the home now.
        done: how many acts of each kind left, without what the program itself writes to the owner.
        with_whom: the handles of the addressees by kind of act, each once, newest first.
        orders: what the owner ordered, approved or rejected on the day, newest first.
        posts: the texts and links of the posts that left, newest first, without those deleted since.
        room_words: how many messages it wrote in rooms.
        reasons: why items were only liked or left alone, most frequent first.
        wishes: who wants work that only the owner can order, its link or address, and the work in the model's words;
            newest first.
        refused: other acts that a rule, a gate or a service refused, or that expired; most frequent first.
        sent_back: calls of tools that the model was asked to change.
        dropped: work of its own that was given up, such as a ritual or a commitment.
        cases: at most three, of as many kinds as possible, rarest first.
        drafts: acts that wait for the owner's approval, in words.
        leaving: acts that wait to leave: number, first words, time, and why not sooner.
        is_unasked: whether an act neither ordered nor approved rests on others' words, or a change of a file waits.
        scheduled: its next schedules, one line each, as of now.
        tasks: the tasks of plans that it holds, `owner/repo#12/task-3`.
        blocked: the tasks of plans that cannot continue by themselves; they are among the troubles too.
        takes_none: why it takes no tasks at all, as of now; "" if it may.
        rituals: names, each with the link to its result, or to its thread.
        own_time: what it did on a schedule or for HEARTBEAT.md, thoughts without a post, and the ends of changes of its
            files and of its proposals, by label; and whether words of others were behind it.
        troubles: most serious first.
        kept_since: where the journal begins, ISO-8601, if it covers only a part of the day; otherwise "".

    """

    name: str
    day: str
    timezone: str
    is_today: bool
    awake: bool
    done: dict[Lane, int]
    with_whom: dict[IntentKind, tuple[str, ...]]
    orders: tuple[DayOrder, ...]
    posts: tuple[tuple[str, str], ...]
    room_words: int
    reasons: tuple[DayReason, ...]
    wishes: tuple[tuple[str, str, str], ...]
    refused: tuple[DayRefusal, ...]
    sent_back: tuple[DayRefusal, ...]
    dropped: tuple[DayRefusal, ...]
    cases: tuple[TellingCase, ...]
    waits: DayWaits
    drafts: tuple[str, ...]
    leaving: tuple[str, ...]
    is_unasked: bool
    commitments: DayCommitments
    scheduled: tuple[str, ...]
    tasks: tuple[str, ...]
    blocked: tuple[DayTrouble, ...]
    takes_none: str
    rituals: dict[str, str]
    learned: DayLearned
    readings: tuple[DayReading, ...]
    own_time: tuple[tuple[str, str, str, bool], ...]
    spent: DaySpent
    troubles: tuple[DayTrouble, ...]
    kept_since: str

    @property
    def is_own(self) -> bool:
        """Whether it holds no words but those of the program, the SOUL and the owner, apart from names of accounts.

        Reasons, titles, and what was read or learned may hold words of others, and so may the answers to them.
        """
        refused = (*self.refused, *self.sent_back, *self.dropped)
        told: tuple[DayOrder | DayRefusal | DayTrouble, ...] = (*self.orders, *refused, *self.troubles)
        standing = (self.cases, self.wishes, self.is_unasked, self.tasks, self.blocked, self.rituals)
        titles = (self.commitments.open, self.commitments.kept, self.commitments.given_up)
        learned = (self.learned.is_others, self.readings)
        own_time = (is_others for *_, is_others in self.own_time)
        return not any((*(one.is_others for one in told), *standing, *titles, *learned, *own_time))


Row: TypeAlias = tuple[str, str]
"""A label and its text; an empty text stands for `NOTHING`."""
NOTHING = "nothing"

_WIDTH, _LABEL = 79, 15
_REASON_CHARS, _TITLE_CHARS = 150, 70
_MOST_REASONS, _MOST_TITLES, _MOST_NAMES = 4, 3, 8

_SAID: Mapping[IntentKind, tuple[str, str]] = {
    "post": ("post", "posts"),
    "reply": ("reply", "replies"),
    "direct_message": ("direct message", "direct messages"),
    "space_chat": ("line in a room", "lines in a room"),
    "issue": ("issue", "issues"),
    "issue_comment": ("comment on GitHub", "comments on GitHub"),
    "pull_request": ("pull request", "pull requests"),
    "review": ("review", "reviews"),
}
_LIKED: Mapping[IntentKind, tuple[str, str]] = {
    "like": ("like", "likes"),
    "repost": ("repost", "reposts"),
    "reaction": ("reaction on GitHub", "reactions on GitHub"),
    "star": ("star", "stars"),
}
_FOLLOWED: Mapping[IntentKind, tuple[str, str]] = {
    "follow": ("account", "accounts"),
    "account_follow": ("account on GitHub", "accounts on GitHub"),
}


def day_lines(summary: DaySummary) -> list[str]:
    """Return the lines of a day for the terminal."""
    return [
        _headline(summary),
        *_rows(did(summary, wants=_wanting(summary))),
        *(
            line
            for who, where, what in summary.wishes[:_MOST_NAMES]
            for line in wrapped("    · ", f"@{one_line(who)} wants {_short(what)}: {where}", _WIDTH)
        ),
        *(line for case in summary.cases for line in _case(case, summary.timezone)),
        *(_rows([("waits", _waiting(summary))]) if summary.is_today else ()),
        *_rows(led_to(summary)),
        *_rows([("spent", _spent(summary.spent))]),
        *_wrong(summary),
    ]


def told_text(summary: DaySummary) -> str:
    """Return a day for the model, one line for each row with content, without the owner's waiting messages."""
    told = (
        *did(summary),
        *(("posted", f"“{_short(words)}” {link}") for words, link in summary.posts[:_MOST_NAMES]),
        *(("for example", case_text(case, summary.timezone)) for case in summary.cases),
        *([("waits", _waiting(summary, owner_messages=0))] if summary.is_today else ()),
        *(("draft", one) for one in summary.drafts),
        *led_to(summary),
        *(("wrong", f"{_short(one.what)}{_often(one.count)}") for one in summary.troubles),
    )
    lines = (f"{label}: {text}" for label, text in told if text)
    return "\n".join((f"{summary.day}", *lines)) if any(text for _, text in told) else f"{summary.day}: {NOTHING}"


def brief_text(summary: DaySummary) -> str:
    """Return the day in a few lines for a prompt: with whom it dealt, the owner's orders, and what is blocked.

    It holds handles, counts, words of the program, and the first words of acts that the owner ordered or approved.
    """
    alone = [one for one in summary.reasons if one.act != LIKED_ONLY]
    refused = sum(one.count for one in summary.refused)
    parts = [
        *(f"followed {text}" if label == "followed" else text for label, text in _acts(summary) if text),
        *([f"left alone {_with(_total(alone), (name for one in alone for name in one.who))}"] if alone else []),
        *([f"refused or failed {number(refused)}"] if refused else []),
    ]
    lines = [f"Today so far: {'; '.join(parts) or NOTHING}"]
    lines += [
        f"{label.capitalize()} by your owner: {told}" for label, told in _orders(summary, is_for_prompt=True) if told
    ]
    if summary.wishes:
        lines.append(f"Who wants work that your owner can order (day_read tells what): {_wanting(summary)}")
    return "\n".join([*lines, *(f"{one.what}." for one in summary.blocked)])


def did(summary: DaySummary, *, wants: str = "") -> list[Row]:
    """Return what it did and left alone on a day; `wants` replaces the list of what people want done."""
    return [
        *_acts(summary),
        *((label, told) for label, told in _orders(summary) if told),
        *([("want work", wants or _wishes(summary))] if summary.wishes else ()),
        ("left alone", _left_alone(summary)),
        *(
            (label, _refusals(found))
            for label, found in (
                ("refused", summary.refused),
                ("sent back", summary.sent_back),
                ("dropped", summary.dropped),
            )
            if found
        ),
    ]


def _acts(summary: DaySummary) -> list[Row]:
    """Return the acts that left, with the handles of the addressees."""
    done, whom = summary.done, summary.with_whom
    return [
        ("said", _counts(done, _SAID, summary.room_words, whom)),
        ("liked", _counts(done, _LIKED, whom=whom)),
        ("followed", _counts(done, _FOLLOWED, whom=whom)),
        *([("also done", others)] if (others := _others(done)) else ()),
    ]


def _orders(summary: DaySummary, *, is_for_prompt: bool = False) -> list[Row]:
    """Return what the owner ordered, approved or stopped, each act with its state.

    Waiting acts come first. A prompt gets no reasons and no words of stopped acts, as others may have written them.
    """
    rows: dict[str, list[str]] = {"ordered": [], "approved": [], "stopped": []}
    for one in sorted(summary.orders, key=lambda one: one.outcome not in {"held", "pending", "sending"}):
        is_stopped = one.outcome in {"rejected", "withdrawn"}
        label = "ordered" if one.was_ordered else "stopped" if is_stopped else "approved"
        words = "" if is_for_prompt and is_stopped else one.words
        stands = one.when or STANDS[one.outcome]
        stands += f": {_reason(one.reason)}" if one.reason and not is_for_prompt else ""
        rows[label].append(f"{_short(one.what + words, _TITLE_CHARS)} ({stands})")
    return [(label, _first(told, _MOST_TITLES if is_for_prompt else _MOST_NAMES)) for label, told in rows.items()]


def _first(told: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Return the first of these on one line, and the number of the others."""
    return ", ".join(told[:most]) + (f" and {len(told) - most} more" if len(told) > most else "")


def _total(reasons: Iterable[DayReason]) -> int:
    return sum(one.count for one in reasons)


def _with(count: int, names: Iterable[str]) -> str:
    return f"{number(count)}{_bracketed(names)}"


def _bracketed(names: Iterable[str]) -> str:
    return "".join(f" ({told})" for told in _names(names))


def _names(handles: Iterable[str]) -> list[str]:
    """Return one text that lists the handles, each once; [] without handles."""
    who = [f"@{one_line(handle)}" for handle in dict.fromkeys(handles)]
    return [_first(who)] if who else []


def public_text(day: PublicDay) -> str:
    """Return what everybody may know of a day, in one line."""
    followed = _counts(day.done, _FOLLOWED)
    said, liked = _counts(day.done, _SAID, day.room_words), _counts(day.done, _LIKED)
    told = (said, liked, followed and f"{followed} followed", _others(day.done))
    return ", ".join(filter(None, told)) or NOTHING


def led_to(summary: DaySummary) -> list[Row]:
    """Return the results of a day: commitments and tasks if any, rituals, its own time, and what it learned."""
    tasks = "; ".join(filter(None, (_listed(summary.tasks), summary.takes_none))) if summary.is_today else ""
    told = [("commitments", _commitments(summary)), ("tasks", tasks)]
    told += [("ritual", f"{one_line(name)} {link}") for name, link in summary.rituals.items()]
    told += [("scheduled", line) for line in (summary.scheduled if summary.is_today else ())]
    told += [("read", _reading(one)) for one in summary.readings]
    told += [(label, f"{_short(what)}: {_reason(came)}") for label, what, came, _ in summary.own_time]
    return [*(row for row in told if row[1]), ("learned", _learned(summary))]


def case_text(case: TellingCase, timezone: str) -> str:
    """Return a decision and its reason, with the time of day."""
    when = f"{local(parse_iso(case.at), timezone):%H:%M}"
    because = f", because: {_reason(case.reason)}" if case.reason else ""
    return f"{when} {_short(case.summary)}{because}"


def story_of(case: TellingCase) -> str:
    """Return the argument of `soul why` for a decision; "" if there is no story."""
    return (web_url(case.uri) or case.uri) if case.uri.startswith(("at://", MESSAGES)) else ""


def _headline(summary: DaySummary) -> str:
    state = ", awake" if summary.awake else ", not awake (`soul status` tells why)"
    partly = f", told from {summary.kept_since[:10]} on" if summary.kept_since else ""
    return f"{summary.name} on {summary.day}{state if summary.is_today else ''}{partly}"


def _rows(told: Iterable[Row]) -> Iterator[str]:
    for label, text in told:
        yield from wrapped(f"  {label:<{_LABEL - 2}}", text or NOTHING, _WIDTH)


def _counts(
    done: Mapping[Lane, int],
    words: Mapping[IntentKind, tuple[str, str]],
    room: int = 0,
    whom: Mapping[IntentKind, Sequence[str]] = {},
) -> str:
    counts = Counter({kind: done.get(kind, 0) for kind in words})
    if words is _SAID:
        counts["space_chat"] += room
    return ", ".join(
        f"{counted(counts[kind], *said)}{_bracketed(whom.get(kind, ()))}"
        for kind, said in words.items()
        if counts[kind]
    )


def _others(done: Mapping[Lane, int]) -> str:
    """Return the acts that neither say, like nor follow anything, such as a deletion."""
    counts = {kind: count for kind, count in done.items() if kind not in {*_SAID, *_LIKED, *_FOLLOWED}}
    return ", ".join(f"{deed(kind)} ({number(count)})" for kind, count in counts.items())


def _wanting(summary: DaySummary) -> str:
    """Return how many people want work that only the owner can order, and their handles."""
    return _with(len(people := dict.fromkeys(who for who, *_ in summary.wishes)), people)


def _wishes(summary: DaySummary) -> str:
    """Return how many people want work that only the owner can order, and what, in our words; each person once."""
    wanted: dict[str, list[str]] = {}
    for who, _, what in summary.wishes:
        wanted.setdefault(who, []).append(what)
    told = [f"@{one_line(who)}: {_short(', '.join(dict.fromkeys(what)))}" for who, what in wanted.items()]
    return f"{number(len(told))} ({'; '.join(told[:_MOST_NAMES])})"


def _left_alone(summary: DaySummary) -> str:
    """Return how much was left alone, of whom and why; what the model judged counts as one reason."""
    groups: dict[str, list[DayReason]] = {}
    for one in summary.reasons:
        if one.act != LIKED_ONLY:
            groups.setdefault("its own judgement" if one.is_chosen else _reason(one.reason), []).append(one)
    told = [
        f"{reason} ({': '.join((number(_total(same)), *_names(name for one in same for name in one.who)))})"
        for reason, same in sorted(groups.items(), key=lambda group: -_total(group[1]))
    ]
    shown = [*told[:_MOST_REASONS], *(["other reasons"] if len(told) > _MOST_REASONS else ())]
    return f"{number(_total(one for same in groups.values() for one in same))}: {'; '.join(shown)}" if told else ""


def _refusals(found: Sequence[DayRefusal]) -> str:
    """Return how much did not leave as intended, and why."""
    why: Counter[str] = Counter()
    for one in found:
        reason = _reason(one.reason)
        why[f"{one_line(deed(one.what))}: {reason}" if one.what else reason] += one.count
    return _by_reason(why)


def _by_reason(why: Counter[str]) -> str:
    told = [f"{reason} ({number(count)})" for reason, count in why.most_common(_MOST_REASONS)]
    if rest := sum(count for _, count in why.most_common()[_MOST_REASONS:]):
        told.append(f"other reasons ({number(rest)})")
    return f"{number(why.total())}: {'; '.join(told)}" if told else ""


def _reason(text: str) -> str:
    return _short(told_reason(text)) or "no reason is kept"


def _short(text: str, most: int = _REASON_CHARS) -> str:
    return shortened(clean(text), most)


def _case(case: TellingCase, timezone: str) -> Iterator[str]:
    yield from wrapped("    · ", case_text(case, timezone), _WIDTH)
    if story := story_of(case):
        yield f"      soul why {story}"


def _waiting(summary: DaySummary, **instead: int) -> str:
    """Return what waits, with counts replaced by `instead`, and when acts leave."""
    told = waiting_text(asdict(summary.waits) | instead)
    return told + (f" ({'; '.join(summary.leaving[:_MOST_TITLES])})" if summary.leaving else "")


def _commitments(summary: DaySummary) -> str:
    made = summary.commitments
    told = (("open", made.open if summary.is_today else ()), ("kept", made.kept), ("given up", made.given_up))
    return "; ".join(f"{len(titles)} {word}: {_listed(titles)}" for word, titles in told if titles)


def _listed(titles: Sequence[str]) -> str:
    shown = ", ".join(_short(as_prose(title), _TITLE_CHARS) for title in titles[:_MOST_TITLES])
    return f"{shown} and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else shown


def _reading(one: DayReading) -> str:
    found = _short(as_prose(one.finding)) or "nothing found that is worth keeping"
    post = f" (posted about it: {one.post})" if one.post else ""
    return f"{_short(as_prose(one.question), _TITLE_CHARS)} {found}{post}"


def _learned(summary: DaySummary) -> str:
    learned, told = summary.learned, []
    if learned.memories:
        about = f" ({_listed(learned.subjects)})" if learned.subjects else ""
        told.append(f"{counted(learned.memories, 'memory', 'memories')}{about}")
    changes = Counter(_reason(why) for why in learned.self_changes)
    for why, count in list(changes.items())[-_MOST_TITLES:]:
        told.append(f"SELF.md changed{_often(count)}: {why}")
    told += [f"the skill {name}, which you approved" for name in dict.fromkeys(learned.skills)]
    return "; ".join(told)


def _often(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _spent(spent: DaySpent) -> str:
    of = f" of {number(spent.tokens_cap)}" if spent.tokens_cap is not None and spent.fraction is not None else ""
    usd = "" if spent.usd is None else f", {spent.usd:.2f} USD"
    usd += f" of {spent.usd_cap:.2f}" if usd and spent.usd_cap is not None and spent.fraction is not None else ""
    left = "" if spent.fraction is None else f"; {max(0.0, 1 - spent.fraction):.0%} of the day's budget is left"
    aside = set_aside(spent.tokens_set_aside)
    unanswered = cut_off(spent.tokens_unanswered)
    return f"{number(spent.tokens)}{of} tokens in {counted(spent.calls, 'call')}{unanswered}{usd}{left}{aside}"


def _wrong(summary: DaySummary) -> Iterable[str]:
    if not summary.troubles:
        yield from _rows([("wrong", NOTHING)])
    for number_of, one in enumerate(summary.troubles):
        yield from _rows([("" if number_of else "wrong", f"{_short(one.what)}{_often(one.count)}")])
        if one.remedy:
            yield from wrapped(" " * _LABEL + "→ ", _reason(one.remedy), _WIDTH)
