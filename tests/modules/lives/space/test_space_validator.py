"""Proves that a message is stopped by the first check it fails, repaired where honest, and acts for nobody else.

Each agent computes the same assignee and the same parts by itself, and nobody is assigned what it cannot do. True
answers of many kinds are said: what single words suspect is for the model to judge.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import OWNS_ADDRESSED, OWNS_ANSWERED, Claimed, Presence
from common.schemas import VALID_COMMITMENT_TYPES, Commitment
from common.text.host_intent import HostIntent
from modules.lives.space.commitment_filter import permitted
from modules.lives.space.commitment_maker import OwnLines
from modules.lives.space.host_request import is_open
from modules.lives.space.policy import (
    action_owner,
    assign_role,
    conversation_mode,
    elect_action_owner,
    eligible_agents,
    required_capability,
    role_budget,
    role_now,
)
from modules.lives.space.snapshot import RoomContents, RoomSnapshot
from modules.lives.space.types import Check, Counts, HistoryEntry, HostRequest, Mode, Role, ValidationOutcome
from modules.lives.space.validator import MessageValidator, validate_space_message

AT = "2026-01-05T12:00:00.000Z"
PEERS = ("rebecca", "peterben")
Case = tuple[str, tuple[Commitment, ...], RoomSnapshot]
"""A message, its commitments, and the state of the room."""
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
    """The model as a judge that gives one answer to all questions."""

    confirms: bool

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        return self.confirms

    async def has_fault(self, check: Check, candidate: str, said: Sequence[str]) -> bool:
        return self.confirms

    def clear(self) -> None:
        """Do nothing, since nothing is kept."""

    async def validated(
        self, message: str, commitments: tuple[Commitment, ...], snapshot: RoomSnapshot
    ) -> ValidationOutcome:
        return await MessageValidator(self, NothingSaid()).validate(message, commitments, snapshot)


class NothingSaid(OwnLines):
    """The lines of a SOUL that has said nothing yet."""

    def __init__(self) -> None: ...

    async def hold(self, message: str) -> bool:
        return False


def with_(case: Case, **changes: Any) -> Case:
    """Return the same message with changes to the state of the room."""
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


async def test_the_same_vote_as_another_s_answers_the_host_once_unless_the_judge_objects() -> None:
    vote = "I vote for the slate roof."
    case = context(vote, mode="discussion", agent_messages=("I vote for the slate roof!", "Tin for me."))
    asked = replace(case[2], history=(HistoryEntry("h", "host", "Which one?", NOW, is_host=True), *case[2].history))
    answered = replace(asked, counts=Counts(2, 1))
    for snapshot, stops in ((case[2], True), (asked, False), (answered, True)):
        outcome = await Judge(confirms=False).validated(vote, (), snapshot)
        assert (outcome.stop is not None) is stops
    assert (await Judge(confirms=True).validated(vote, (), asked)).stop


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


ISSUE_LINE = "Create an issue for the release checklist in github.com/acme/site"
NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8, unique=True)


def test_the_owner_is_the_name_whose_hash_with_the_request_is_lowest() -> None:
    prefixes = {
        name: hashlib.sha256(f"{name}{ISSUE_LINE}".encode()).hexdigest()[:8]
        for name in ("marvin", "rebecca", "peterben")
    }
    assert prefixes == {"peterben": "05f429e8", "rebecca": "07392094", "marvin": "84234c24"}
    assert elect_action_owner(["marvin", "rebecca", "peterben"], ISSUE_LINE) == "peterben"


@given(NAMES, st.text(max_size=150), st.randoms(use_true_random=False))
def test_the_election_knows_no_order_and_is_the_same_in_every_head(
    names: list[str], content: str, chance: random.Random
) -> None:
    owner = elect_action_owner(names, content)
    shuffled = sorted(names, key=lambda _: chance.random())
    assert owner in names
    assert elect_action_owner(shuffled, content) == owner
    capabilities = dict.fromkeys(names)
    for me in names:
        peers = [name for name in shuffled if name != me]
        eligible = eligible_agents(me, peers, capabilities, social_only=False)
        assert sorted(eligible) == sorted(names)
        assert elect_action_owner(eligible, content) == owner


@given(NAMES, st.text(min_size=100, max_size=120, alphabet="abc é"), st.text(max_size=20))
def test_what_follows_the_first_hundred_units_changes_no_owner(names: list[str], content: str, more: str) -> None:
    assert elect_action_owner(names, content) == elect_action_owner(names, content[:100] + more)


@pytest.mark.parametrize(
    ("content", "agent", "role"),
    [
        ("Open a plan for the migration", "marvin", "observer"),
        ("Open a plan for the migration", "rebecca", "reviewer"),
        ("Draft the retro notes", "marvin", "actor"),
        ("Draft the retro notes", "peterben", "reviewer"),
    ],
)
def test_parts_are_those_that_the_other_agents_reckon(content: str, agent: str, role: Role) -> None:
    assert assign_role(agent, content) == role
    assert assign_role(agent, content, is_owner=True) == "actor"


@pytest.mark.parametrize(
    ("content", "mode", "peers", "is_owner", "role"),
    [
        ("Open a plan for the migration", "action", ["rebecca"], False, "observer"),
        ("Open a plan for the migration", "action", ["rebecca"], True, "actor"),
        ("Open a plan for the migration", "action", [], False, "actor"),
        ("Open a plan for the migration", "discussion", ["rebecca"], False, "actor"),
        ("", "action", ["rebecca"], False, "actor"),
    ],
)
def test_without_a_request_or_company_everyone_is_an_actor(
    content: str, mode: Mode, peers: list[str], *, is_owner: bool, role: Role
) -> None:
    assert role_now("marvin", content, mode, peers, is_owner=is_owner) == role


@pytest.mark.parametrize(
    ("intent", "mode"),
    [("action_request", "action"), ("follow_up", "action"), ("discussion", "discussion"), (None, "discussion")],
)
def test_the_newest_message_of_the_host_sets_the_mode(intent: HostIntent | None, mode: str) -> None:
    assert conversation_mode(intent) == mode


def test_who_names_no_capabilities_has_all_and_who_lacks_github_owns_nothing() -> None:
    capabilities = {"rebecca": None, "peterben": ["social"], "sh-marvin": ["social", "github"]}
    peers = ["rebecca", "peterben", "sh-marvin", "unknown", "rebecca", "marvin"]
    able = eligible_agents("marvin", peers, capabilities, social_only=False)
    assert able == ["marvin", "rebecca", "sh-marvin", "unknown"]
    assert eligible_agents("marvin", peers, capabilities, social_only=True) == ["rebecca", "sh-marvin", "unknown"]


KNOWS = ["social", "github", OWNS_ADDRESSED]
ASKED = "Marvin, can you open an issue for the checklist in github.com/acme/site?"


def _owners(content: str, able: Mapping[str, Sequence[str] | None]) -> set[str | None]:
    """Return whom those present take for the assignee; a member that does not know the rule computes the hash."""
    owners: set[str | None] = set()
    for me in able:
        peers = [name for name in able if name != me]
        if OWNS_ADDRESSED in (able[me] or ()):
            without_me = {name: able[name] for name in peers}
            social_only = "github" not in (able[me] or ())
            owners.add(action_owner(me, peers, without_me, social_only=social_only, content=content, need="github"))
        else:
            can = [name for name in able if able[name] is None or "github" in (able[name] or ())]
            owners.add(elect_action_owner(can, content))
    return owners


@pytest.mark.parametrize("order", [("marvin", "rebecca", "peterben"), ("peterben", "marvin", "rebecca")])
def test_who_alone_is_addressed_owns_the_request_where_all_know_that(order: tuple[str, ...]) -> None:
    able = dict.fromkeys(order, KNOWS)
    for name in order:
        assert _owners(ASKED.replace("Marvin", name.title()), able) == {name}
        assert _owners(f"@{name} {ISSUE_LINE}", able) == {name}
    assert _owners(ISSUE_LINE, able) == {elect_action_owner(order, ISSUE_LINE)}
    both = f"marvin and rebecca: {ISSUE_LINE}"
    assert _owners(both, able) == {elect_action_owner(order, both)}


@given(NAMES, st.data())
def test_there_are_never_two_owners_whoever_knows_the_rule(names: list[str], data: st.DataObject) -> None:
    kinds = st.sampled_from([KNOWS, ["social", OWNS_ADDRESSED], ["social", "github"], None])
    able = {name: data.draw(kinds) for name in names}
    content = f"{data.draw(st.sampled_from([*names, 'nobody']))}, {ISSUE_LINE}"
    if len(names) > 1:
        assert len(_owners(content, able)) == 1


def test_whose_question_the_host_answered_owns_the_request_where_all_know_that_rule() -> None:
    def owner(*rules: str) -> str | None:
        able = {"rebecca": ["social", "github", *rules]}
        return action_owner(
            "marvin", able, able, social_only=False, content="Rebecca: yes", need="github", assignee="marvin"
        )

    assert owner(OWNS_ADDRESSED, OWNS_ANSWERED) == "marvin"
    assert owner(OWNS_ADDRESSED) == "rebecca"


def test_who_is_addressed_and_cannot_do_it_does_not_own_it() -> None:
    able = {"marvin": ["social", OWNS_ADDRESSED], "rebecca": KNOWS, "peterben": KNOWS}
    assert _owners(ASKED, able) == {elect_action_owner(["rebecca", "peterben"], ASKED)}


def test_who_lives_without_github_may_own_a_post() -> None:
    able = eligible_agents("marvin", ["rebecca"], {"rebecca": ["social"]}, social_only=True, capability="social")
    assert able == ["marvin", "rebecca"]


def test_alone_one_owns_every_request_and_a_group_without_github_owns_none() -> None:
    assert action_owner("marvin", [], {}, social_only=True, content=ISSUE_LINE, need="github") == "marvin"
    nobody = action_owner(
        "marvin", ["rebecca"], {"rebecca": ["social"]}, social_only=True, content=ISSUE_LINE, need="github"
    )
    assert nobody is None


@pytest.mark.parametrize(
    ("content", "versions", "own", "need"),
    [
        ("Post something about autumn on Bluesky", ["0.1.0", "0.3.2"], "0.1.0", "social"),
        ("Share it on social media", ["v0.2.0"], "0.1.0", "social"),
        ("Post something about autumn on Bluesky", ["0.1.0", "10.1.0"], "0.1.0", "github"),
        ("Post something about autumn on Bluesky", ["0.0.9"], "0.1.0", "github"),
        ("Post the issue on Bluesky", ["0.1.0"], "0.1.0", "github"),
        ("Comment on #12 that the post is out", ["0.1.0"], "0.1.0", "github"),
        ("Create an issue", ["0.1.0"], "0.1.0", "github"),
    ],
)
def test_a_post_needs_no_github_where_all_agents_know_that(
    content: str, versions: list[str], own: str, need: str
) -> None:
    assert required_capability(content, versions, own) == need


ASKED_FOR_ISSUE = "Rebecca, open an issue for the clock in acme/site."
"""The host's request where a line names no other; Rebecca carries it out."""

TRUE_LINES: list[tuple[str, str, tuple[str, ...]]] = [
    ("Give me the steps, numbered.", "1. Stop the clock.\n2. Set it.\n3. Start it at noon.", ()),
    ("Which options do we have?", "- keep the clock\n- buy a new one\n- do without", ()),
    ("What did you measure?", "Three things: (1) 12 ms cold, (2) 3 ms warm, (3) 40 ms on a full disk.", ()),
    ("When did you see it?", "As I said this morning, the clock stopped at midnight, and only in Lisbon.", ()),
    ("What was the error last week?", "I don't remember that; can you paste it?", ()),
    ("Do you know where the log is?", "No. Where was it filed last time? I have only seen the build log.", ()),
    ("Do you agree?", "I agree.", ()),
    ("Is that right, Marvin?", "Exactly.", ("The clock counts in UTC.",)),
    ("Shall we use UTC?", "I agree, and the logs of March prove it: all 41 faults fell on the change of the hour.", ()),
    ("Thanks, that is all!", "You're welcome!", ()),
    (ASKED_FOR_ISSUE, "Rebecca, the acceptance criteria of #12 still hold; nothing has changed since.", ()),
    ("What should the issue contain?", "It should contain the time zone and the hour at which the clock stops.", ()),
    ("How would you lay out the plan?", "I'd structure it by room: hall first, then kitchen, then attic.", ()),
    ("Anything to add?", "I'd add the time zone: without it nobody sees the fault in Lisbon.", ()),
    ("Is something missing?", "One more thing: the clock has no battery.", ()),
    ("Can you look at the log?", "I'll look at it now and tell you what I see.", ()),
    ("What do you do next?", "I'll read the two open pull requests, since nobody has.", ()),
    ("Who reviews it?", "Happy to review once Rebecca opens it, since I know that file.", ()),
    ("Will you start?", "I'll wait for Rebecca's measurement, because the fix depends on it.", ()),
    ("Which repo is the clock in?", "acme/clock, not acme/site. Which repo did you have in mind for the issue?", ()),
    ("Where should we meet?", "Where do you live? Lisbon would suit me.", ()),
    ("Is the plan good?", "The plan could fail at step 3: nobody has the key of the attic.", ()),
    ("Why not tin?", "Slate lasts a shorter time than copper.", ("Slate lasts longer than copper.",)),
    (
        "Should backups verify?",
        "No: nightly backups should not verify checksums before rotating archives.",
        ("Nightly backups should verify checksums before rotating archives.",),
    ),
    ("And how many days?", "Keep backup archives 90 days online.", ("Keep backup archives 30 days online.",)),
    ("Who trusts whom?", "The client trusts the server.", ("The server trusts the client.",)),
    ("In one word, what is the cause?", "Rain.", ("It is the rain.",)),
    (ASKED_FOR_ISSUE, "I won't open a second issue; Rebecca's is enough.", ()),
    ("What happened at midnight?", "The server ran out of disk, and the clock froze with it.", ()),
    (
        "Can you help me word it?",
        'Let me offer this: "The clock stops at 00:00 in Lisbon and starts when reloaded."',
        (),
    ),
]


@pytest.mark.parametrize("owns", [True, False])
async def test_of_thirty_true_lines_at_most_one_is_held(*, owns: bool) -> None:
    suspected, held = 0, []
    for asked, line, said in TRUE_LINES:
        message, commitments, snapshot = context(line, is_owner=owns, request=OPEN, agent_messages=said)
        host = HistoryEntry("h", "host", asked, NOW, is_host=True)
        case = (message, commitments, replace(snapshot, history=(*snapshot.history, host)))
        suspected += bool(validate_space_message(*case).suspected)
        if (await Judge(confirms=False).validated(*case)).stop:
            held.append(line)
    assert len(TRUE_LINES) == 30
    assert suspected >= 10  # otherwise these lines prove nothing
    assert len(held) <= 1, held
