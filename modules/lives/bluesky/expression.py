"""Posts thoughts of the SOUL's own: when, from which starting point, and in which turn.

`expression_schedule.json` keeps the next moment and the starting point across restarts. The time of the last post is
read from the outbox, so that a crash between the two can never lead to a second post.
"""

import hashlib
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from adapters.atproto.client import Atproto
from common import constants as c
from common.clock import Clock, doubled, iso, local, parse_iso, span
from common.constants import DAY_MS, HOUR_MS, MINUTE_MS
from common.errors import BudgetExceeded
from common.facts import ExpressionFacts
from common.files import Json, load_state, save_state
from common.intervals import Pace
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from modules.lives.bluesky.expression_policy import (
    DAILY_POST_LIMIT,
    DESIGN_SHARE,
    EXPRESSION_SOURCES_REMEMBERED,
    FURTHEST_MORNING,
    ExpressionPrompt,
    PostingDecision,
    can_post_original,
    fill,
    generate_design_inspiration_prompt,
    generate_expression_prompt,
    is_expression_plan,
    next_expression_time,
    next_morning,
    shows_picture,
    tone_of,
)
from modules.lives.bluesky.reply_check import Scaffold, scaffold_of
from modules.lives.bluesky.types import SILENCE_TOOL, ExpressionTurn
from modules.runtime.control import Standing
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.scheduler.policy import QUIET_HOURS_END, Outcome, is_quiet
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner, chosen_in
from modules.services.identity.identity import Identity, Me, assess_self_richness, self_lines
from modules.services.memory.admission import READING_SOURCE, Kind, Memory, Query
from modules.services.memory.profiles import LIMITS, POSTING, Profiles, most_posts
from modules.services.memory.rows import MemoryStore
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.policy import MOST_SCHEDULED, is_for_later
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.own_feed.expressions import Expressions, Prompts
from modules.services.own_feed.policy import get_engagement_patterns, unanswered_sources
from modules.services.pictures.choosing import ChosenPicture, PictureChooser, bare_words
from modules.services.skills.skills import Framer, Skills

MAX_EXPRESSION_ROUNDS = 6
EXPRESSION_RETRY_MIN_MS = 15 * MINUTE_MS
EXPRESSION_RETRY_MAX_MS = 4 * HOUR_MS
SELF_RICHNESS_NUDGE_BELOW = 50

_SKILL = "expression"
CAUSE = "expression"
_READING = "reading"
_FACTS: tuple[Kind, ...] = ("fact",)
_READING_SHARE, _READ_LATELY, _MOST_SHARED = 0.5, timedelta(days=3), 20
_RECENT_SHOWN = 5
_POST_WAITS = "its last post still waits to be sent"
_SHOWN_CHARS = 60
_TWO_MINUTES_MS = 2 * c.MINUTE_MS
_TEN_MINUTES_MS = 10 * c.MINUTE_MS


@dataclass(slots=True, kw_only=True)
class ExpressionCycle:
    """Plans the next thought, and runs its turn when it is due.

    Where days are shortened, there is no night and no daily limit of our own. While the SOUL may not act in public, a
    thought that is due waits, with its starting point. Some thoughts start from a picture, which `chooser` finds; if
    none can be loaded, the thought starts from something else.
    """

    me: Me
    path: Path
    expressions: Expressions
    atproto: Atproto
    outbox: Outbox
    identity: Identity
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    chooser: PictureChooser
    profiles: Profiles
    memories: MemoryStore
    journal: Journal
    clock: Clock
    rng: random.Random
    pace: Pace
    standing: Callable[[], Standing] = Standing
    notice: str = field(init=False)
    _prompts: Prompts = field(init=False)
    _failures: int = field(default=0, init=False)
    _state: Json = field(init=False)

    def __post_init__(self) -> None:
        self._prompts = Prompts(self.skills)
        loaded = load_state(self.path, {}, fits=is_expression_plan)
        self.notice, self._state = loaded.notice, loaded.data

    @property
    def next_at(self) -> datetime | None:
        """The time at which the next thought is due; None before the first scheduling."""
        stored = self._state.get("nextExpression")
        return parse_iso(stored) if stored else None

    @property
    def next_source(self) -> str:
        """The source of the next thought; "" before the first scheduling."""
        return str(self._state.get("source") or "")

    async def resume(self, last_on_feed: str | None = None) -> datetime:
        """Keep the moment chosen before a sleep or a restart, unless it is long over or a post came since; return it.

        A SOUL that was woken for its thought would else put it off by minutes, or by an hour.
        """
        now, planned, last = self.clock.now(), self.next_at, await self._last(last_on_feed)
        just_due = now - timedelta(milliseconds=self.clock.real(_TEN_MINUTES_MS))
        soonest = last + timedelta(milliseconds=self.pace.expression_min_ms) if last else just_due
        return planned if planned and planned >= max(just_due, soonest) else await self.schedule(last_on_feed)

    async def _last(self, last_on_feed: str | None) -> datetime | None:
        """Return when the newest post was made, or accepted by the outbox; None if there is none."""
        known = [parse_iso(moment) for moment in (last_on_feed, self._state.get("lastExpression")) if moment]
        if (accepted := await self.outbox.last_done_or_accepted("post")) is not None:
            known.append(accepted)
        # NOTE(self): a clock that was ahead for a while leaves moments in the future; they are ignored.
        return max((moment for moment in known if moment <= self.clock.now()), default=None)

    async def schedule(self, last_on_feed: str | None = None) -> datetime:
        """Choose the next moment and starting point; `last_on_feed` is the time of our newest post, if known."""
        now, last = self.clock.now(), await self._last(last_on_feed)
        moment = next_expression_time(
            now,
            last,
            self.rng,
            min_ms=self.pace.expression_min_ms,
            max_ms=self.pace.expression_max_ms,
            soonest_ms=(self.clock.real(_TWO_MINUTES_MS), self.clock.real(_TEN_MINUTES_MS)),
        )
        if is_quiet(moment, self.me.timezone, keeps_hours=self.clock.keeps_hours):
            moment = next_morning(local(moment, self.me.timezone), self.rng)
        self._plan(moment, last)
        return moment

    async def run_if_due(self) -> Outcome:
        """Have a thought if it is due; return what happened and when to look again."""
        now = self.clock.now()
        due = self.next_at
        longest = timedelta(milliseconds=self.pace.expression_max_ms)
        if due is None or due - now > (FURTHEST_MORNING if self.clock.keeps_hours else longest):
            # NOTE(self): a clock that was ahead for a while leaves a moment too far in the future.
            due = await self.schedule()
        check_s = self.pace.expression_check_ms / 1000
        if now < due:
            left = (due - now).total_seconds()
            return Outcome(
                ran=False,
                reason=f"next thought at {local(due, self.me.timezone):%Y-%m-%d %H:%M}",
                next_in_s=min(left + 1, check_s),
            )
        if not (allowed := await self._may_post()):
            again = now + timedelta(milliseconds=self.pace.expression_min_ms)
            morning = next_morning(local(now, self.me.timezone), self.rng)
            self.put_off(morning if self.clock.keeps_hours else again)
            return Outcome(ran=False, reason=allowed.reason)
        if await self._post_waits():
            return Outcome(ran=False, reason=_POST_WAITS)
        return await self.express()

    def put_off(self, until: datetime) -> None:
        """Postpone the planned thought until that moment."""
        if self.next_at is None or self.next_at < until:
            self._state["nextExpression"] = iso(until)
            save_state(self.path, self._state)

    async def express(self) -> Outcome:
        """Have one thought now, with at most one post. A failed try is repeated later, with growing pauses."""
        if not (standing := self.standing()).may_act:
            return Outcome(ran=False, reason=str(standing))
        read = await self._unshared_finding()
        (prompt, source), picture = (self._after_reading(read), None) if read else await self._start()
        recent = await self._recent_posts()
        finding = read.body if read else ""
        if bounded := bool((await self.profiles.get()).agent.get(LIMITS)):
            prompt = prompt.removesuffix(self._prompts.suffix()).rstrip()
        subject = ExpressionTurn(source, prompt, self._scaffold(source, prompt), picture, recent, finding, bounded)
        words = Provenance.STRANGER if picture or read else Provenance.SELF
        turn = Turn(loop=CAUSE, provenance=words, cause_id=CAUSE, subject=subject, importance="own")
        await self.journal.record(Entry("life", CAUSE, f"A thought from {source}", line="think", reason=prompt))
        try:
            turn_result = await self.turn_runner.run_turn(
                turn=turn,
                system=await self.prompter.prompt(
                    skill=_SKILL,
                    variables={
                        "bluesky_username": self.me.bluesky_username,
                        "richness_note": self._richness_note(),
                        "tool": subject.tool,
                    },
                    audience="bluesky",
                    session_key=CAUSE,
                    query=prompt,
                    now=self.clock.now(),
                    least=Provenance.SELF,
                ),
                messages=(Message("user", await self._user_message(subject, recent)),),
                purpose=_SKILL,
                tool_choice="required",
                only=(subject.tool, SILENCE_TOOL),
                max_rounds=MAX_EXPRESSION_ROUNDS,
                about=self._facts(subject, recent),
            )
        except BudgetExceeded as error:
            return await self._economize(error)
        except BaseException:
            self._postpone()
            raise
        revisions = subject.revisions
        if revisions.asked_for_better:
            summary = f"Asked for a better invitation: {' '.join(revisions.first_text.split())[:_SHOWN_CHARS]}"
            entry = Entry("life", CAUSE, summary, "think", revisions.problem, data={"act": "asked_for_better"})
            await self.journal.record(replace(entry, provenance=turn_result.provenance))
        result = chosen_in(turn_result, "expression")
        if result.act not in {"posted", "silent"}:
            delay = self._postpone()
            summary = f"No post: {result.reason}; next try in {span(delay)}"
            entry = Entry("decision", CAUSE, summary, line="warn", reason=result.reason, data={"act": "skipped"})
            await self.journal.record(replace(entry, provenance=result.provenance))
            return Outcome(ran=True, reason=summary)
        self._failures = 0
        ended = "Posted nothing" if result.act == "silent" else f"{'Wrote down' if result.held else 'Shared'} a thought"
        await self._remember(subject, result.intent_id)
        sources = [*self._state.get("recentSources", []), source][-EXPRESSION_SOURCES_REMEMBERED:]
        self._state["recentSources"] = sources
        if read:
            self._state["sharedFindings"] = [*self._state.get("sharedFindings", []), read.id][-_MOST_SHARED:]
        self._state["lastExpression"] = iso(self.clock.now())
        due = await self.schedule()
        reason = f"{result.reason or 'it was time for one'}; next at {local(due, self.me.timezone):%H:%M}"
        told = {"act": result.act, "source": source, "rounds": turn_result.rounds}
        told |= {"finding": read.id} if read else {}
        entry = Entry("decision", CAUSE, f"{ended} ({source})", "done", reason, intent_id=result.intent_id, data=told)
        await self.journal.record(replace(entry, provenance=result.provenance))
        return Outcome(ran=True, reason=f"{ended} ({source})")

    async def _remember(self, of: ExpressionTurn, intent_id: str | None) -> None:
        """Record the thought with the present or future address of its post, so that reactions can be read later."""
        if intent_id and (intent := await self.outbox.get(intent_id)):
            uri, made = record_uri(self.atproto.did, intent), parse_iso(intent.created_at)
            self.expressions.record(uri, intent.body.public_text, source=of.source, prompt=of.prompt, at=made)

    async def _economize(self, error: BudgetExceeded) -> Outcome:
        """Put the thought off until the budget may allow it; that is no failure, and the starting point stays."""
        until_then = timedelta(seconds=error.retry_after or 0, milliseconds=self.pace.expression_min_ms)
        longest = timedelta(milliseconds=self.pace.expression_max_ms)
        self.put_off(moment := self.clock.now() + min(until_then, longest))
        summary = f"No thought before {local(moment, self.me.timezone):%a %H:%M}: {error}"
        await self.journal.record(Entry("decision", CAUSE, summary, reason="budget", data={"act": "skipped"}))
        return Outcome(ran=False, reason=summary)

    async def _unshared_finding(self) -> Memory | None:
        """Return the newest finding of a reading from which no post started yet, in half of the cases; else None."""
        now = self.clock.now()
        query = Query("", _FACTS, now - _READ_LATELY, _MOST_SHARED, public_only=True)
        shared = self._state.get("sharedFindings", [])
        found = (one for one in await self.memories.search(query, now) if one.source.startswith(READING_SOURCE))
        newest = next((one for one in found if one.id not in shared), None)
        return newest if newest and self.rng.random() < _READING_SHARE else None

    def _after_reading(self, read: Memory) -> ExpressionPrompt:
        template = self._prompts.templates()[_READING]
        return ExpressionPrompt(f"{fill(template, [read.subject]).strip()}\n\n{self._prompts.suffix()}", _READING)

    async def _start(self) -> tuple[ExpressionPrompt, ChosenPicture | None]:
        """Return the starting point of the thought, and the picture that it shows."""
        start, collection = self._starting_point()
        if not shows_picture(start.source):
            return start, None
        chosen: ApiResult[ChosenPicture] = Err("the collection is listed no longer", "not_found")
        if collection and (design := self.chooser.source_at(collection)):
            chosen = await self.chooser.choose(design, why=start.source)
        if isinstance(chosen, Ok):
            return start, chosen.data
        reason = f"{collection}: {chosen.error}"
        await self.journal.record(Entry("life", CAUSE, "No picture to start from", reason=reason))
        return self._choose(with_picture=False)[0], None

    def _starting_point(self) -> tuple[ExpressionPrompt, str]:
        """Return the planned starting point, or a new one if SELF.md changed since, and its collection of pictures."""
        source, prompt = self._state.get("source"), self._state.get("prompt")
        if source and prompt and self._state.get("selfDigest", self._self_digest()) == self._self_digest():
            return ExpressionPrompt(str(prompt), str(source)), str(self._state.get("collection") or "")
        return self._choose()

    def _self_digest(self) -> str:
        return hashlib.sha256(self.identity.text().encode(errors="replace")).hexdigest()

    def _choose(self, *, with_picture: bool = True) -> tuple[ExpressionPrompt, str]:
        """Return a starting point, and the address of the collection for its picture; "" if it shows none."""
        templates, suffix = self._prompts.templates(), self._prompts.suffix()
        design = self.chooser.pick_source() if with_picture else None
        if design and self.rng.random() < DESIGN_SHARE:
            inspired = generate_design_inspiration_prompt(templates, design, suffix=suffix)
            if inspired:
                return inspired, design.url
        made = generate_expression_prompt(
            self.identity.extract(),
            templates=templates,
            fallbacks=self._prompts.fallbacks(),
            suffix=suffix,
            recent_sources=self._state.get("recentSources", []),
            unanswered=unanswered_sources(self.expressions.all()),
            design=design,
            rng=self.rng,
        )
        return made, design.url if design and shows_picture(made.source) else ""

    def _plan(self, moment: datetime, last: datetime | None) -> None:
        (prompt, source), collection = self._choose()
        planned = {"nextExpression": iso(moment), "source": source, "prompt": prompt, "collection": collection}
        self._state |= planned | {"selfDigest": self._self_digest()}
        if last:
            self._state["lastExpression"] = iso(last)
        save_state(self.path, self._state)

    def _postpone(self) -> float:
        """Plan the next try: 15 lived minutes after a failure, doubling up to 4 hours; return the true seconds."""
        delay_ms = doubled(EXPRESSION_RETRY_MIN_MS, self._failures, EXPRESSION_RETRY_MAX_MS)
        pause_s = self.clock.real(delay_ms) / 1000
        self._failures += 1
        self._plan(self.clock.now() + timedelta(seconds=pause_s), None)
        return pause_s

    async def _may_post(self) -> PostingDecision:
        """Return whether one more thought fits this day: at most as many as the owner said, and at most twelve.

        Where days are shortened, only the owner's number counts, over the last such day, at any hour.
        """
        now, asked = local(self.clock.now(), self.me.timezone), most_posts(await self.profiles.get())
        if self.clock.keeps_hours:
            began, hour, most = now.replace(hour=0, minute=0, second=0, microsecond=0), now.hour, DAILY_POST_LIMIT
        else:
            began, hour, most = now - timedelta(milliseconds=self.clock.real(DAY_MS)), QUIET_HOURS_END, sys.maxsize
        posts = await self.outbox.accepted_since("post", began)
        return can_post_original(posts, hour, most if asked is None else min(asked, most))

    async def is_day_full(self) -> bool:
        """Return whether there were as many posts of its own today as the owner or the program allows."""
        return (await self._may_post()).code == "daily_limit"

    async def why_not_now(self) -> str:
        """Return why a post that is not a thought does not fit now; "" if it does."""
        if not (allowed := await self._may_post()):
            return allowed.reason
        last, least = await self.outbox.last_done_or_accepted("post"), self.pace.expression_min_ms
        if last and timedelta() <= self.clock.now() - last < timedelta(milliseconds=least):
            return "its last post is too recent"
        return _POST_WAITS if await self._post_waits() else ""

    async def _post_waits(self) -> bool:
        """Return whether a post of ours is about to be sent: the turn of a thought would not be shown it."""
        now, posts = self.clock.now(), await self.outbox.of_kind("post", MOST_SCHEDULED + 1)
        return any(one.state in {"pending", "sending"} and not is_for_later(one, now) for one in posts)

    def _richness_note(self) -> str:
        richness = assess_self_richness(self.identity.extract())
        if richness.score >= SELF_RICHNESS_NUDGE_BELOW:
            return ""
        return self.skills.render(_SKILL, "Richness Note", parts=", ".join(richness.suggestions))

    def _scaffold(self, source: str, prompt: str) -> Scaffold:
        """Return the words that are in the prompt but not in SELF.md."""
        texts = [self.skills.section(_SKILL, name) for name in self.skills.section_names(_SKILL)]
        texts += [self.skills.section("core", "Ground Rules"), *self._prompts.all()]
        return scaffold_of(texts, [f"source: {source}\nprompt: {prompt}"], [self.identity.text()])

    def _facts(self, subject: ExpressionTurn, recent: Sequence[str]) -> ExpressionFacts:
        """Return the facts of the thought's turn: it is about the lines of SELF.md that are in its prompt."""
        lines = (line for part in self_lines(self.identity.extract()).values() for line in part)
        patterns = get_engagement_patterns(self.expressions.all())
        return ExpressionFacts(
            subject.source,
            tuple(line for line in lines if line in subject.prompt),
            tuple(recent),
            answered=tuple(one.about.source for one in patterns if one.code != "Unanswered"),
            unanswered=tuple(one.about.source for one in patterns if one.code == "Unanswered"),
            picture=subject.picture.title if subject.picture else "",
        )

    async def _recent_posts(self) -> tuple[str, ...]:
        """Return our latest posts, a line each, newest first; those of the outbox if our feed cannot be read."""
        feed = await self.atproto.get_author_feed(self.atproto.did, limit=20)
        if isinstance(feed, Err):
            own = [one.body.public_text for one in await self.outbox.of_kind("post", 20) if one.state == "done"]
        else:
            own = [item.post.text for item in feed.data.items if item.reposted_by is None and item.post.reply is None]
        return tuple(" ".join(bare_words(text).split()) for text in own[:_RECENT_SHOWN])

    def _answered(self) -> str:
        """Return how readers responded to earlier thoughts, a line for each pattern; "" while nothing is known."""
        patterns = get_engagement_patterns(self.expressions.all())
        told = [self.skills.render(_SKILL, "What Was Answered", one.code, source=one.about.source) for one in patterns]
        return "\n".join(line.strip() for line in told)

    async def _user_message(self, subject: ExpressionTurn, recent: Sequence[str]) -> str:
        said = (await self.profiles.get()).agent
        now = local(self.clock.now(), self.me.timezone)
        framed = subject.picture.framed(Framer(self.skills, self.rng)) if subject.picture else ""
        found = subject.finding and Framer(self.skills, self.rng).frame(
            "reading", author="several", uri="Bluesky", text=subject.finding
        )
        return self.skills.render(
            _SKILL,
            "User Message Template",
            tone=self.skills.subsection(_SKILL, "Tones", tone_of(now.hour)).strip(),
            source=subject.source,
            prompt=subject.prompt,
            wishes=said.get(POSTING, ""),
            bounds=said.get(LIMITS, ""),
            picture=self.skills.render("shared-picture", "For a Post", picture=framed).strip() if framed else "",
            reading=found,
            tool=subject.tool,
            answered=self._answered(),
            recent_posts="\n".join(f"- {text}" for text in recent) or self.skills.section(_SKILL, "No Posts"),
        )
