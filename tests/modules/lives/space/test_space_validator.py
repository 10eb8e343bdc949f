"""A message is stopped by the first check it fails, mended where that is honest, and never acts for somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import Claimed, Presence
from common.schemas import VALID_COMMITMENT_TYPES, Commitment
from modules.lives.space.commitment_filter import permitted
from modules.lives.space.commitment_maker import OwnLines
from modules.lives.space.host_request import is_open
from modules.lives.space.policy import role_budget
from modules.lives.space.snapshot import RoomContents, RoomSnapshot
from modules.lives.space.types import Check, Counts, HistoryEntry, HostRequest, Mode, Role, ValidationOutcome
from modules.lives.space.validator import MessageValidator, validate_space_message

AT = "2026-01-05T12:00:00.000Z"
PEERS = ("rebecca", "peterben")
Case = tuple[str, tuple[Commitment, ...], RoomSnapshot]
"""What is checked: a message, what it commits to, and how the room stands."""
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPEN = HostRequest("Open an issue", "m1", NOW - timedelta(seconds=30), fulfilled=False, cycles=1)
ISSUE = Commitment(type="create_issue", repo="acme/site", title="Login", description="Words")
COMMENT = Commitment(type="comment_issue", description="Words on #3")
POST = Commitment(type="post_bluesky", content="Words")
FINE = "Tea tastes of the weather in which it grew."
SUBSTANCE = (
    "Nightly backups verify checksums before rotating archives offsite, retention windows shrink storage bills, "
    "and restore drills prove everything works."
)


def context(
    message: str = FINE,
    *commitments: Commitment,
    mode: Mode = "action",
    role: Role = "actor",
    is_owner: bool = False,
    request: HostRequest = OPEN,
    counts: Counts = Counts(0, 0),  # noqa: B008 - a frozen value
    agent_messages: tuple[str, ...] = (),
) -> Case:
    said = tuple(HistoryEntry(f"a{at}", "rebecca", text, NOW) for at, text in enumerate(agent_messages))
    snapshot = RoomSnapshot(
        now=NOW,
        me="marvin",
        history=said,
        room=RoomContents(peers={name: Presence(name, name, "1.0", joined_at=AT, last_seen=AT) for name in PEERS}),
        request=request,
        is_open=is_open(request),
        mode=mode,
        owner="marvin" if is_owner else "rebecca",
        is_owner=is_owner,
        role=role,
        counts=counts,
        saturation=7,
        budget=role_budget(role, mode),
        repo="acme/site",
    )
    return message, commitments, snapshot


@dataclass
class Judge:
    """The model as a judge; it gives one answer to all questions."""

    confirms: bool

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        return self.confirms

    async def has_fault(self, check: Check, candidate: str, said: Sequence[str]) -> bool:
        return self.confirms

    def clear(self) -> None:
        """It keeps nothing."""

    async def validated(
        self, message: str, commitments: tuple[Commitment, ...], snapshot: RoomSnapshot
    ) -> ValidationOutcome:
        return await MessageValidator(self, NothingSaid()).validate(message, commitments, snapshot)


class NothingSaid(OwnLines):
    """What a SOUL said that has just begun to live."""

    def __init__(self) -> None: ...

    async def hold(self, message: str) -> bool:
        return False


def with_(case: Case, **changes: Any) -> Case:
    """The same message where the room stands otherwise."""
    message, commitments, snapshot = case
    return message, commitments, replace(snapshot, **changes)


def test_a_message_without_fault_may_be_said_as_it_is() -> None:
    outcome = validate_space_message(*context())
    assert (outcome.message, outcome.stop, outcome.suspected) == (FINE, None, ())


ROWS = [
    (context("I'll open it"), "non_owner_action", "Non-owner action", "not action owner", False),
    (context("- one\n- two"), "list", "Contains list", "list", True),
    (context("I'll open it", is_owner=True), "empty_promise", "Empty commitment", "empty commitment", False),
    (context("Great point."), "echo_opener", "Echo", "echo", True),
    (context(counts=Counts(4, 4)), "role_budget", "Role message budget exceeded", "budget", False),
    (context("once rebecca opens it"), "deference", "Deference", "deference", True),
    (context("which repo?"), "repo_amnesia", "Repo amnesia", "repo amnesia", True),
    (context("It should include tea"), "meta_discussion", "Meta-discussion", "meta-discussion", False),
    (context("One more thing: tea"), "scope_inflation", "Scope inflation", "scope inflation", False),
    (
        context(request=replace(OPEN, requested_at=NOW)),
        "non_owner_discussion",
        "Non-owner discussion during pending action",
        "not action owner",
        False,
    ),
    (context(counts=Counts(7, 0)), "saturation", "Conversation saturated", "saturated", False),
    (context(role="observer", counts=Counts(3, 0)), "observer", "Observer silence enforced", "observer", False),
    (
        context(SUBSTANCE, agent_messages=(SUBSTANCE,)),
        "semantic_echo",
        "Semantic echo (ensemble)",
        "semantic echo",
        False,
    ),
]


@pytest.mark.parametrize(
    ("stopped", "check", "signature", "tag", "salvage"), ROWS, ids=[row[1] + str(at) for at, row in enumerate(ROWS)]
)
async def test_each_check_stops_its_message_under_its_name(
    stopped: Case, check: str, signature: str, tag: str, *, salvage: bool
) -> None:
    outcome = await Judge(confirms=True).validated(*stopped)
    stop = outcome.stop
    assert stop
    assert (stop.check, stop.signature, stop.tag, stop.salvage) == (check, signature, tag, salvage)
    assert stop.reason
    assert outcome.figures["mode"] == "action"


@pytest.mark.parametrize(
    "passing",
    [
        context("I'll open it", ISSUE, is_owner=True),
        context("It should include tea", ISSUE, is_owner=True),
        context("One more thing: tea", ISSUE, is_owner=True),
        context(FINE, COMMENT, counts=Counts(9, 9)),
        context(FINE, COMMENT, role="observer", counts=Counts(4, 0)),
        context(SUBSTANCE, COMMENT, agent_messages=(SUBSTANCE,)),
        context(FINE, COMMENT, request=replace(OPEN, requested_at=NOW)),
    ],
    ids=["promise", "meta", "scope", "saturated", "observer", "echo", "owner first"],
)
def test_what_comes_with_a_commitment_is_more_than_talk(passing: Case) -> None:
    assert validate_space_message(*passing).stop is None


@pytest.mark.parametrize(
    "passing",
    [
        context("once rebecca opens it", mode="discussion"),
        context("which repo?", mode="discussion"),
        context("It should include tea", mode="discussion"),
        context("One more thing: tea", mode="discussion"),
        context("I'm drafting a poem", mode="discussion"),
        context(mode="discussion", request=replace(OPEN, requested_at=NOW)),
        context(mode="discussion", role="observer", counts=Counts(6, 7)),
        context(mode="discussion", counts=Counts(6, 15)),
        with_(context("which repo?"), repo=None),
        context("I'm drafting it", is_owner=True),
        context("I'm drafting it", request=replace(OPEN, fulfilled=True)),
        context("I'm drafting it", request=HostRequest()),
        context(request=replace(OPEN, requested_at=NOW), is_owner=True),
        context(request=replace(OPEN, requested_at=NOW - timedelta(seconds=20))),
        with_(context(request=replace(OPEN, requested_at=NOW)), owner=None),
        with_(context(request=replace(OPEN, requested_at=NOW)), addressed=("marvin",)),
        with_(context(counts=Counts(4, 4)), room=RoomContents()),
        context(counts=Counts(3, 3)),
        context(role="observer", counts=Counts(2, 0)),
    ],
)
def test_a_check_that_does_not_apply_stops_nothing(passing: Case) -> None:
    assert validate_space_message(*passing).stop is None


async def test_who_acts_for_another_keeps_no_commitments_whatever_else_is_wrong() -> None:
    for fault in ("- one\n", "Exactly. ", "which repo? ", "once rebecca opens it. "):
        outcome = await Judge(confirms=True).validated(*context(f"{fault} I'll open it", ISSUE))
        assert outcome.stop
        assert (outcome.stop.check, outcome.stop.salvage) == ("non_owner_action", False)


def test_blank_words_are_not_said_but_what_they_commit_to_may_be_kept() -> None:
    outcome = validate_space_message(*context(" \n", ISSUE))
    assert outcome.stop
    assert (outcome.stop.check, outcome.stop.salvage) == (None, True)


@pytest.mark.parametrize(
    "message",
    ["Exactly, and that's why the log is right.", "I agree with Rebecca, and the age of 41877 proves it."],
)
def test_who_agrees_and_says_more_is_heard_in_their_own_words(message: str) -> None:
    outcome = validate_space_message(*context(message, mode="discussion", agent_messages=("Tea is good.",)))
    assert (outcome.stop, outcome.message) == (None, message)


def test_a_promise_in_talk_in_which_nobody_asked_for_work_is_heard() -> None:
    assert validate_space_message(*context("I'll look at the header tonight.", mode="discussion")).stop is None


BACKUPS = "Nightly backups should verify checksums before rotating archives"
CONTRAST = "Contrast ratios matter more than brand palette on small screens"


async def test_words_are_compared_with_all_that_agents_said_lately() -> None:
    said = ("Verify checksums before rotating backups every night", "Design reviews feel rushed lately")
    case = context(BACKUPS, mode="discussion", agent_messages=said)
    outcome = await Judge(confirms=True).validated(*case)
    assert outcome.stop
    assert outcome.stop.check == "semantic_echo"
    assert outcome.figures["strategy"] == "concept-novelty(14% new)"
    assert (await Judge(confirms=False).validated(*case)).stop is None


def test_few_words_that_stand_in_the_talk_already_are_not_said_again() -> None:
    said = ("peterben, leave it as it is.", *("Tea is weather." for _ in range(15)))
    outcome = validate_space_message(*context("rebecca: Leave it as it is!", mode="discussion", agent_messages=said))
    assert outcome.stop
    assert (outcome.stop.check, outcome.figures["strategy"]) == ("semantic_echo", "word for word")
    assert outcome.figures["matched"] == said[0]


def test_a_message_near_to_another_is_left_to_the_judge() -> None:
    said = ("Small screens need stronger contrast than our brand palette gives", "Someone keeps asking about tokens")
    outcome = validate_space_message(*context(CONTRAST, mode="discussion", agent_messages=said))
    assert (outcome.stop, outcome.suspected) == (None, ("echo_judge",))
    assert outcome.figures["score"] == pytest.approx(0.483, abs=0.01)
    alone = validate_space_message(*context(CONTRAST, mode="discussion", agent_messages=said[:1]))
    assert (alone.stop, alone.suspected) == (None, ())


@given(
    kinds=st.lists(st.sampled_from(VALID_COMMITMENT_TYPES), max_size=6),
    owns=st.booleans(),
    social=st.booleans(),
    request=st.sampled_from([OPEN, replace(OPEN, fulfilled=True), HostRequest()]),
)
def test_who_does_not_own_an_open_request_makes_no_second_thing_and_who_has_no_github_none(
    kinds: list[str], request: HostRequest, *, owns: bool, social: bool
) -> None:
    wanted = [Commitment.model_validate({"type": kind, "title": str(at)}) for at, kind in enumerate(kinds)]
    found = permitted(wanted, replace(context(request=request, is_owner=owns)[2], social_only=social))
    kept = {one.type for one in found.kept}
    assert not (request is OPEN and not owns and kept & {"create_issue", "create_plan"})
    assert not (social and any(one.is_github for one in found.kept))
    assert sorted([*(one.title for one in found.kept), *(one.commitment.title for one in found.left_out)]) == sorted(
        one.title for one in wanted
    )
    kept_titles = [one.title for one in found.kept]
    assert [one.title for one in wanted if one.title in kept_titles] == kept_titles


def test_what_is_left_out_says_why() -> None:
    snapshot = context()[2]
    (by_owner,) = permitted([ISSUE], snapshot).left_out
    assert by_owner.code == "non_owner"
    assert by_owner.line.startswith("[VALIDATION REJECTED] Non-owner action: create_issue: somebody else was elected")
    (social,) = permitted([COMMENT], replace(snapshot, is_owner=True, social_only=True)).left_out
    assert social.line == "[VALIDATION REJECTED] Social-only: Social-only: comment_issue"
    claim = Claimed("rebecca", "r-1", "create_issue", "acme/site#Login", AT)
    claimed = replace(snapshot, is_owner=True, room=replace(snapshot.room, claims=(claim,)))
    taken = permitted([ISSUE, POST], claimed)
    assert (taken.kept, taken.is_taken) == ((POST,), False)
    assert taken.left_out[0].line == "[VALIDATION REJECTED] Claimed by a peer: rebecca works at acme/site#Login"
    assert permitted([ISSUE], claimed).is_taken


def test_whoever_is_asked_what_became_of_a_request_may_tell_again_what_was_told() -> None:
    done = "Done — issue opened: Clock stops at midnight: https://github.com/acme/site/issues/1"
    again = context(done, request=replace(OPEN, fulfilled=True), agent_messages=(done,))
    assert validate_space_message(*again).stop is not None
    assert validate_space_message(*with_(again, follow_up="link")).stop is None
