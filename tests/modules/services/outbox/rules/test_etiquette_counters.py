"""No limit is exceeded: not by a burst, not by a backlog, not by a late approval, not after the clock was set.

Proves the pure rules by tables and properties. The rules as data and the page that shows them to people say the same.
Proves also which files wait for the owner wherever they are pushed.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Actor
from common.clock import FakeClock, ScaledClock
from common.person import Person, Trace
from modules.runtime.database.people import know_person
from modules.services.outbox.bodies import DeleteBody
from modules.services.outbox.people import ACTS_OF_PEOPLE
from modules.services.outbox.rules import policy, rules
from modules.services.outbox.rules.policy import authority, first_trusted
from modules.services.outbox.rules.rules import (
    ETIQUETTE_RULES,
    POINTS_PER_HOUR,
    REPLIES_PER_PERSON,
    STRANGERS,
    EtiquetteRule,
    ReplyAdvice,
)
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.work.limits import TURN_LIMITS
from tests.modules.services.outbox.rules.etiquette_outbox import (
    OWN,
    PEER,
    EtiquetteOutbox,
    like,
    open_etiquette_outbox,
    reply_to,
    words,
)
from tests.project import ROOT

HOUR, DAY = 3600, 86_400
FULL = int(POINTS_PER_HOUR.limit)


@pytest.mark.parametrize(
    ("spent", "ago_s", "blocked"),
    [
        (FULL - 3, 0, set()),
        (FULL - 2, 0, {"points-per-hour"}),
        (FULL, HOUR - 1, {"points-per-hour"}),
        (FULL, HOUR + 1, set()),
        (28_000 - 3, 2 * HOUR, set()),
        (28_000 - 2, 2 * HOUR, {"points-per-day"}),
        (28_000, DAY + 1, set()),
        (FULL, -HOUR + 1, {"points-per-hour"}),
        (FULL, -HOUR - 1, set()),
    ],
)
async def test_at_admission_what_would_pass_the_points_is_refused(
    etiquette_outbox: EtiquetteOutbox, spent: int, ago_s: float, blocked: set[str]
) -> None:
    received = await etiquette_outbox.receive("ada")
    await etiquette_outbox.spend(spent, ago_s=ago_s)
    assert await etiquette_outbox.blocked_by(like(received.uri)) == blocked


async def test_what_would_pass_the_points_is_to_be_tried_again_when_enough_are_free(tmp_path: Path) -> None:
    speed = 10
    async with open_etiquette_outbox(tmp_path, speed=speed) as etiquette_outbox:
        received = await etiquette_outbox.receive("ada")
        await etiquette_outbox.spend(10, ago_s=600 / speed)
        await etiquette_outbox.spend(FULL - 10)
        advice = await etiquette_outbox.etiquette.before_reply(received, [])
        assert (advice.act, round(advice.retry_in_s)) == ("later", (HOUR - 600) / speed)
        submitted = await etiquette_outbox.outbox.submit(reply_to(received))
        not_before = submitted.advice.not_before
        assert not_before is not None
        etiquette_outbox.clock.jump((not_before - etiquette_outbox.clock.now()).total_seconds())
        assert (await etiquette_outbox.outbox.submit(reply_to(received))).accepted


async def test_what_waits_counts_at_the_door_and_a_deletion_counts_least(etiquette_outbox: EtiquetteOutbox) -> None:
    received = await etiquette_outbox.receive("ada")
    await etiquette_outbox.outbox.submit(like(received.uri))
    await etiquette_outbox.spend(FULL - 4)
    assert await etiquette_outbox.blocked_by(reply_to(received)) == {"points-per-hour"}
    assert (
        await etiquette_outbox.blocked_by(ProposedAction(DeleteBody(uri=f"at://{OWN}/app.bsky.feed.post/1"))) == set()
    )


async def test_what_was_admitted_waits_until_the_window_frees(etiquette_outbox: EtiquetteOutbox) -> None:
    received = await etiquette_outbox.receive("ada")
    await etiquette_outbox.outbox.submit(like(received.uri))
    await etiquette_outbox.spend(FULL - 2, ago_s=600)
    await etiquette_outbox.spend(100)
    began = etiquette_outbox.clock.now()
    report = await etiquette_outbox.outbox.deliver_due()
    assert report.next_in_s == pytest.approx(HOUR - 600, abs=1)
    await etiquette_outbox.drain(HOUR, step_s=30)
    ((left, _),) = etiquette_outbox.sender.departures
    assert timedelta(seconds=HOUR - 600) <= left - began <= timedelta(seconds=HOUR - 570)


async def test_every_try_counts_and_not_only_the_acts(etiquette_outbox: EtiquetteOutbox) -> None:
    received = await etiquette_outbox.receive("ada")
    submitted = await etiquette_outbox.outbox.submit(like(received.uri))
    await etiquette_outbox.outbox.deliver_due()
    await etiquette_outbox.database.run(
        lambda connection: connection.execute(
            "UPDATE intents SET attempts = 2, deferrals = 1 WHERE id = ?", (submitted.intent.id,)
        )
    )
    other = await etiquette_outbox.receive("bea")
    assert (await etiquette_outbox.verdicts(like(other.uri)))["points-per-hour"].value == 12


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Slate remembers the rain.", True),
        ("SLATE remembers the rain!!! 🌧️", True),
        ("@bea.example Slate remembers the rain 2 https://x.example", True),
        ("Ｓｌａｔｅ remembers the rain", True),  # noqa: RUF001 - wide letters are under test
        ("Tin remembers the rain.", False),
    ],
)
async def test_the_same_words_leave_twice_a_day(etiquette_outbox: EtiquetteOutbox, text: str, *, same: bool) -> None:
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("cy"), "Slate remembers the rain.")
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("dee"), "slate remembers, the rain 7")
    assert await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("bea"), text)) == (
        {"same-reply"} if same else set()
    )
    await etiquette_outbox.clock.advance(DAY + 1)
    assert await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("bea"), text)) == set()


@pytest.mark.parametrize(("age_days", "limit"), [(None, 6), (13.9, 6), (14.1, 20)])
async def test_a_young_account_replies_to_few_strangers_an_hour(
    tmp_path: Path, age_days: float | None, limit: int
) -> None:
    async with open_etiquette_outbox(tmp_path) as somewhere:
        now = somewhere.clock.now()
    born_at = None if age_days is None else now - timedelta(days=age_days)
    async with open_etiquette_outbox(tmp_path, born_at=born_at) as etiquette_outbox:
        replied = [
            await etiquette_outbox.answer(await etiquette_outbox.receive(f"p{number}")) for number in range(limit + 3)
        ]
        assert replied == [True] * limit + [False] * 3
        assert await etiquette_outbox.answer(await etiquette_outbox.receive("p0", "And on tin, then?"))
        await etiquette_outbox.clock.advance(HOUR + 1)
        assert await etiquette_outbox.answer(await etiquette_outbox.receive("late"))


async def test_owner_and_peers_are_no_strangers(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(20):
        assert await etiquette_outbox.answer(await etiquette_outbox.receive(f"p{number}"))
    assert not await etiquette_outbox.answer(await etiquette_outbox.receive("one-more"))
    for name in ("owner", "peer"):
        assert await etiquette_outbox.answer(await etiquette_outbox.receive(name))


async def test_a_handle_makes_nobody_a_peer_whose_account_is_another(etiquette_outbox: EtiquetteOutbox) -> None:
    etiquette = etiquette_outbox.etiquette
    assert etiquette.is_peer(Actor("", "peer.example"))
    assert etiquette.is_peer(Actor(PEER, "renamed.example"))
    assert not etiquette.is_peer(Actor("did:plc:somebody", "peer.example"))


async def approved_late(etiquette_outbox: EtiquetteOutbox, count: int) -> None:
    """Submit replies to strangers, which the owner approves all at once."""
    for number in range(count):
        await etiquette_outbox.outbox.submit(reply_to(await etiquette_outbox.receive(f"p{number}"), words(number)))
    await etiquette_outbox.database.run(
        lambda connection: connection.execute("UPDATE intents SET state = 'pending', error = NULL")
    )


@pytest.mark.slow
async def test_a_late_yes_to_many_drafts_does_not_pass_the_limit_on_strangers(tmp_path: Path) -> None:
    def ask_the_owner(*_: object) -> Sequence[Verdict]:
        return [Verdict("approval", "hold", "the owner wants to see it first")]

    async with open_etiquette_outbox(tmp_path, born_at=None, more_rules=[ask_the_owner]) as etiquette_outbox:
        await approved_late(etiquette_outbox, 20)
        await etiquette_outbox.drain(4 * HOUR, step_s=300)
        left = [(moment, authority(intent.target)) for moment, intent in etiquette_outbox.sender.departures]
        assert len(left) == 20
        for moment, _ in left:
            assert len({who for other, who in left if moment <= other < moment + timedelta(hours=1)}) <= 6


async def test_the_same_stranger_counts_once_however_often(etiquette_outbox: EtiquetteOutbox) -> None:
    for number in range(5):
        assert await etiquette_outbox.answer(
            await etiquette_outbox.receive("ada", f"question {number}: {'x' * 10 * number}?")
        )
    assert (await etiquette_outbox.verdicts(reply_to(await etiquette_outbox.receive("bea"))))["strangers"].value == 1


@pytest.mark.parametrize("stored", ["{cut o", "[]"])
async def test_a_reply_whose_body_cannot_be_read_keeps_no_other_from_leaving(
    etiquette_outbox: EtiquetteOutbox, stored: str
) -> None:
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("ada"))
    await etiquette_outbox.database.run(lambda rows: rows.execute("UPDATE intents SET body = ?", (stored,)))
    assert await etiquette_outbox.answer(await etiquette_outbox.receive("bob"))


async def _forget_all(etiquette_outbox: EtiquetteOutbox) -> list[str]:
    """Forget a person whom every act reached; return what the database counts after that."""

    def forget(rows: sqlite3.Connection) -> list[str]:
        acts = frozenset(row[0] for row in rows.execute("SELECT id FROM intents"))
        know_person(rows, Person("did:plc:ada"))
        assert ACTS_OF_PEOPLE.forget(rows, Trace(Person("did:plc:ada"), intents=acts))
        return [str(tuple(row)) for row in rows.execute("SELECT * FROM other_writes")]

    return await etiquette_outbox.database.run(forget)


async def test_whoever_is_forgotten_gets_no_more_than_before(etiquette_outbox: EtiquetteOutbox) -> None:
    most = int(REPLIES_PER_PERSON.limit)
    counted = list[str]()
    for _ in range(most):
        assert await etiquette_outbox.answer(await etiquette_outbox.receive("ada"))
        counted = await _forget_all(etiquette_outbox)
    again = reply_to(await etiquette_outbox.receive("ada"))
    assert await etiquette_outbox.blocked_by(again) == {"replies-per-person"}
    assert not await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("bea")))
    assert len(counted) == most
    assert "did:plc:ada" not in "".join(counted)
    await etiquette_outbox.clock.advance(HOUR + 1)
    assert not await etiquette_outbox.blocked_by(again)


async def test_strangers_who_are_forgotten_keep_their_place_among_those_of_an_hour(
    etiquette_outbox: EtiquetteOutbox,
) -> None:
    for number in range(int(STRANGERS.limit)):
        assert await etiquette_outbox.answer(await etiquette_outbox.receive(f"one{number}"))
    await _forget_all(etiquette_outbox)
    assert await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("another"))) == {"strangers"}
    assert not await etiquette_outbox.blocked_by(reply_to(await etiquette_outbox.receive("one0")))


NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ONE_HOUR = timedelta(hours=1)
SPENT = st.lists(st.tuples(st.integers(0, 3599), st.integers(1, 9)), min_size=1, max_size=40)


@given(st.lists(st.booleans()))
def test_a_run_is_the_tail_without_a_person(turns: list[bool]) -> None:
    run = policy.run_of(turns)
    assert all(turns[len(turns) - run :])
    assert run == len(turns) or not turns[len(turns) - run - 1]


@given(SPENT, st.integers(1, 300))
def test_after_the_wait_what_was_asked_for_is_free_and_not_a_moment_before(
    ago: list[tuple[int, int]], excess: int
) -> None:
    spent = sorted((NOW - timedelta(seconds=seconds), float(points)) for seconds, points in ago)
    excess = min(excess, int(sum(points for _, points in spent)))
    wait = policy.frees_in_s(spent, excess, ONE_HOUR, NOW)

    def freed(at: datetime) -> float:
        return sum(points for moment, points in spent if moment <= at - ONE_HOUR)

    assert freed(NOW + timedelta(seconds=wait - 0.001)) >= excess
    assert freed(NOW + timedelta(seconds=wait - 0.01)) < excess


def test_a_wait_is_never_nothing() -> None:
    assert policy.frees_in_s([], 1, timedelta(0), NOW) > 0


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Don't! STOP…", "don t stop"),
        ("@ada.example see https://x.example/1 now", "see now"),
        ("No 1, no 2", "no no"),
        ("❤️ it", "it"),
        ("3️⃣", "3️⃣"),
        ("🌧️", "🌧️"),
        ("Ça va?", "ça va"),
        ("मैं ठीक हूँ", "मैं ठीक हूँ"),
        ("", ""),
    ],
)
def test_only_words_are_compared(text: str, bare: str) -> None:
    assert policy.letters(text, digits=False) == bare


def test_digits_count_where_they_are_asked_for() -> None:
    assert policy.letters("What is 17 × 3?", digits=True) == "what is 17 3"  # noqa: RUF001 - a multiplication sign


@given(st.text(max_size=80))
def test_bare_words_stay_as_they_are(text: str) -> None:
    once = policy.letters(text, digits=False)
    assert policy.letters(once, digits=False) == once


@pytest.mark.parametrize(
    ("uri", "whose"),
    [
        ("at://did:plc:Abc/app.bsky.feed.post/1", "did:plc:Abc"),
        ("at://Ada.Example/app.bsky.feed.post/1", "ada.example"),
        ("at://did:plc:abc", "did:plc:abc"),
        ("https://x.example/y", ""),
        ("did:plc:abc", ""),
        ("", ""),
    ],
)
def test_a_record_belongs_to_its_authority(uri: str, whose: str) -> None:
    assert policy.authority(uri) == whose


def block(etiquette_rule: str) -> Verdict:
    return Verdict(etiquette_rule, "block", "why")


@pytest.mark.parametrize(
    ("verdicts", "outlook"),
    [
        ([], ReplyAdvice()),
        ([Verdict("consent")], ReplyAdvice()),
        ([block("same-reply")], ReplyAdvice()),
        ([block("consent-by-name")], ReplyAdvice()),
        ([block("loop-pair-soft")], ReplyAdvice("like", "loop-pair-soft: why")),
        ([block("repost-sense"), block("strangers")], ReplyAdvice("like", "repost-sense: why")),
        ([block("loop-thread-soft"), block("loop-thread-hard")], ReplyAdvice("silence", "loop-thread-hard: why")),
        ([block("strangers")], ReplyAdvice("later", "strangers: why", 90)),
        ([block("strangers-while-young")], ReplyAdvice("later", "strangers-while-young: why", 300)),
        ([block("consent"), block("strangers")], ReplyAdvice("silence", "consent: why")),
    ],
)
def test_the_strongest_rule_decides_what_becomes_of_a_reply(verdicts: list[Verdict], outlook: ReplyAdvice) -> None:
    real = ScaledClock(FakeClock(), 2).real
    assert policy.reply_advice(policy.with_advice(one, real) for one in verdicts) == outlook


def test_the_last_one_that_fits_passes_and_the_next_does_not() -> None:
    etiquette_rule = rules.STRANGERS
    assert policy.held_to(etiquette_rule, etiquette_rule.limit - 1).says == "pass"
    refused = policy.held_to(etiquette_rule, etiquette_rule.limit)
    assert (refused.says, refused.value, refused.limit) == ("block", etiquette_rule.limit, etiquette_rule.limit)
    assert policy.held_to(etiquette_rule, etiquette_rule.limit, exempt="the owner asked for it").says == "pass"
    assert policy.held_to(etiquette_rule, etiquette_rule.limit, adds=0).says == "pass"


PAGE = ROOT / "docs" / "manners.md"
SPANS = {None: "–", 3600.0: "an hour", 86_400.0: "a day", 14 * 86_400.0: "14 days", 30 * 86_400.0: "30 days"}  # noqa: RUF001


def as_row(etiquette_rule: EtiquetteRule) -> tuple[str, ...]:
    return (
        f"`{etiquette_rule.name}`",
        f"{etiquette_rule.limit:,g} {etiquette_rule.unit}",
        SPANS[etiquette_rule.window_s],
        etiquette_rule.explanation,
        etiquette_rule.source,
    )


def rows() -> list[tuple[str, ...]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_the_page_shows_every_rule_as_it_is_and_no_other() -> None:
    turns = [
        (f"`{one.name}`", f"{one.limit} turns", SPANS[one.window_s], one.explanation, "our own measure")
        for one in TURN_LIMITS
    ]
    assert rows() == [*(as_row(etiquette_rule) for etiquette_rule in ETIQUETTE_RULES), *turns]


TRUSTED = """
.github/workflows/test.yml .GitHub/Workflows/Deep/x.yml .github/actions/a/action.yml .github/dependabot.yml
.gitlab-ci.yml .circleci/config.yml azure-pipelines.yml Jenkinsfile .travis.yml .drone.yml bitbucket-pipelines.yml
.buildkite/pipeline.yml web/package-lock.json Cargo.lock requirements-dev.lock uv.lock go.sum .npmrc web/.npmrc
.yarnrc.yml .yarn/releases/yarn.cjs pip.conf .pypirc .cargo/config.toml .gitattributes docs/.gitattributes .gitmodules
.pre-commit-config.yaml .husky/pre-push .devcontainer/devcontainer.json .vscode/tasks.json
CODEOWNERS docs/CODEOWNERS .github/CODEOWNERS AGENTS.md src/agents.md CLAUDE.md CLAUDE.local.md .cursorrules
.cursor/rules/a.mdc .github/copilot-instructions.md .claude/settings.json .mcp.json
"""
OTHERS = """
package.json pyproject.toml requirements.txt Cargo.toml go.mod setup.py Makefile README.md src/lock.py yarn.lock.md
.github/ISSUE_TEMPLATE.md docs/.github/workflows/a.yml docs/agents.md.txt myagents.md notcodeowners a.npmrc
tests/travis.yml .gitignore .vscodeignore vscode/tasks.json src/claude/x.py
"""


def test_what_runs_in_ci_or_at_install_or_instructs_agents_is_found_whatever_its_case() -> None:
    assert [path for path in TRUSTED.split() if not first_trusted(["a.py", path])] == []
    assert [path for path in OTHERS.split() if first_trusted([path])] == []
