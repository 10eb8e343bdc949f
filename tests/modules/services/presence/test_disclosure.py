"""The profile says that the account is a bot's, and whose; nothing that it contained before is lost.

The account declares once from whom it takes direct messages, and respects another choice of the owner. The SOUL follows
its owner once; a follow that the owner undoes stays undone.
"""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock
from common.result import Err, Ok
from common.text.graphemes import grapheme_len
from modules.services.identity.identity import Me
from modules.services.outbox.account import AccountContext
from modules.services.pinned_names import PinnedNames
from modules.services.presence.policy import (
    AUTONOMY,
    MESSAGES,
    Level,
    MessagePolicy,
    Operator,
    autonomous,
    honest,
    message_policy_of,
    operator_of,
)
from tests.modules.services.presence.disclosing_account import Account
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, settings_of, write_home
from tests.shipped_skills import CONTACT, CONTACT_LINE
from town.atproto.index import FOLLOW, PROFILE, Json
from town.atproto.service import Fault

BOT = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}
BOTH = {**BOT, "values": [{"val": "!no-unauthenticated"}, {"val": "bot"}]}
OWNER = "did:plc:ownerownerownerownerowne"
PUT, GET = "com.atproto.repo.putRecord", "com.atproto.repo.getRecord"


async def test_an_account_without_a_profile_gets_one_that_says_bot(account: Account) -> None:
    assert await account.disclosure(contact="@owner.test").ensure() == Ok("written")
    assert account.profile()["labels"] == BOT
    assert account.profile()["description"] == f"{CONTACT}@owner.test"
    assert await account.points() == [3, 3]


async def test_what_stands_is_kept_and_nothing_is_written_twice(account: Account) -> None:
    others = {"$type": BOT["$type"], "values": [{"val": "!no-unauthenticated"}], "x-more": 1}
    account.put(displayName="Rowan", description="I like roofs.", labels=others, pinnedPost={"x": ["y"]})
    disclosure = account.disclosure(contact="someone@example.com")
    assert await disclosure.ensure() == Ok("written")
    written = account.profile()
    assert written == {
        "$type": PROFILE,
        "displayName": "Rowan",
        "description": f"I like roofs.\n{CONTACT}someone@example.com",
        "labels": {**BOTH, "x-more": 1},
        "pinnedPost": {"x": ["y"]},
    }
    assert await disclosure.ensure() == Ok("stands")
    assert await account.points() == [2, 3]
    shown = await account.atproto.get_profile("rowan.test")
    assert isinstance(shown, Ok)
    assert "bot" in [label.name for label in shown.data.labels]


async def test_turned_off_it_leaves_the_profile_alone_and_warns(account: Account) -> None:
    told = []
    for labels in ({"labels": BOT}, {}):
        account.put(displayName="Rowan", **labels)
        before = account.profile()
        assert await account.disclosure(label=False, contact="someone@example.com").ensure() == Ok("off")
        assert account.profile() == before
        told.append(account.warnings()[-1])
    assert account.autonomy() is None
    assert told == account.warnings()
    assert told[0] != told[1]
    assert await account.points() == []


async def test_what_failed_is_tried_again_ever_more_rarely_and_told_only_when_it_begins_and_ends(
    account: Account,
) -> None:
    account.put(displayName="Rowan")
    account.faults.arm(Fault("bad_gateway", request=GET, times=10_000))
    disclosure, tries = account.disclosure(), []
    for minute in range(200):
        before = account.faults.armed
        await disclosure.ensure_once()
        tries += [minute] if account.faults.armed != before else []
        await account.clock.advance(60)
    assert tries == [0, 10, 30, 70, 130, 190]
    assert len(account.warnings()) == 1
    account.faults.clear()
    for _ in range(60):
        await disclosure.ensure_once()
        await account.clock.advance(60)
    assert account.profile()["labels"] == BOT
    assert await account.points() == [2, 3]
    assert [kind for kind, _, _ in account.console.lines] == ["warn", "done"]


async def test_a_write_whose_answer_is_lost_is_looked_at_before_it_is_repeated(account: Account) -> None:
    account.put(displayName="Rowan")
    account.faults.arm(Fault("lost_answer", request=PUT))
    assert await account.disclosure().ensure() == Ok("written")
    assert account.profile()["labels"] == BOT
    assert await account.points() == [2, 3]
    assert await account.disclosure().ensure() == Ok("stands")


async def test_a_change_by_somebody_else_meanwhile_is_not_overwritten(account: Account) -> None:
    account.put(displayName="Rowan")
    account.faults.arm(Fault("hang", request=GET, seconds=0.3))
    ensuring = asyncio.create_task(account.disclosure().ensure())
    await until(lambda: account.clock._sleepers, what="the answer that is kept back")
    account.put(displayName="Rowan of the roofs")
    await account.clock.advance(1)
    assert await ensuring == Ok("written")
    assert account.profile() == {"$type": PROFILE, "displayName": "Rowan of the roofs", "labels": BOT}
    assert await account.points() == [2, 2, 3]


async def test_a_record_for_programs_says_who_answers_for_the_account(account: Account) -> None:
    assert await account.disclosure(contact="someone@example.com").ensure() == Ok("written")
    said = account.autonomy()
    assert said
    assert said == {
        "$type": AUTONOMY,
        "createdAt": said["createdAt"],
        "level": "automated",
        "usesGenerativeAI": True,
        "responsibleParty": {"name": "@owner.test", "did": OWNER, "contact": "someone@example.com"},
    }
    await account.clock.advance(86_400)
    assert await account.disclosure(contact="someone@example.com").ensure() == Ok("stands")
    assert account.autonomy() == said


async def test_a_contact_that_is_no_longer_set_is_removed_and_what_others_wrote_stays(
    account: Account,
) -> None:
    account.put(description=f"I like roofs.\n{CONTACT}see the harbour office")
    assert await account.disclosure().ensure() == Ok("written")
    assert account.profile()["description"] == f"I like roofs.\n{CONTACT}see the harbour office"
    account.put(description="I like roofs.")
    assert await account.disclosure(contact="someone@example.com").ensure() == Ok("written")
    assert await account.disclosure().ensure() == Ok("written")
    said = account.autonomy()
    assert said
    assert (account.profile()["description"], said["responsibleParty"]) == (
        "I like roofs.",
        {"name": "@owner.test", "did": OWNER},
    )
    assert await account.disclosure().ensure() == Ok("stands")


@pytest.mark.parametrize(
    ("approval", "level"), [("drafts", "collaborative"), ("strangers", "automated"), ("off", "automated")]
)
def test_where_each_post_waits_for_the_owner_the_account_is_not_automated(
    tmp_path: Path, approval: str, level: Level
) -> None:
    home = write_home(
        tmp_path,
        "rowan",
        OWNER_BLUESKY_SOCIAL_HANDLE_DID=OWNER,
        SOUL_APPROVAL=approval,
        OPERATOR_CONTACT="a  b",
        SOUL_SPEED="1",
    )
    assert operator_of(settings_of(home)) == Operator("owner.test", OWNER, "a b", level)


PROFILES: list[tuple[Json, str, Json, int]] = [
    ({}, "", {"labels": BOT}, 0),
    ({"labels": {**BOT, "values": []}}, "", {"labels": BOT}, 0),
    ({"labels": {**BOT, "values": [{"val": str(n)} for n in range(10)]}}, "", {}, 1),
    ({"labels": "bot"}, "", {}, 1),
    ({"description": "Hi"}, "a@b.example", {"description": f"Hi\n{CONTACT}a@b.example"}, 0),
    ({"description": f"{CONTACT}a@b.example"}, "", {}, 0),
    ({"description": f"{CONTACT}x\n{CONTACT}y"}, "z", {"description": f"{CONTACT}z"}, 0),
    ({"description": "é" * 241}, "z", {}, 1),
    ({"description": "é" * 240}, "z", {"description": "é" * 240 + f"\n{CONTACT}z"}, 0),
    ({"description": "👩‍👩‍👧‍👦" * 102}, "z", {}, 1),
]


@pytest.mark.parametrize(("profile", "contact", "changes", "problems"), PROFILES)
def test_a_profile_becomes_honest(profile: Json, contact: str, changes: Json, problems: int) -> None:
    record, told = honest(profile, contact=contact, line=CONTACT_LINE)
    assert record == {"labels": BOT, **profile, **changes}
    assert len(told) == problems


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["val", "values", "$type"]), inner),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from(["labels", "displayName", "avatar", "x"]), JSON)


@given(st.dictionaries(st.sampled_from(["level", "usesGenerativeAI", "responsibleParty", "x"]), JSON))
def test_the_record_for_programs_is_complete_whatever_stood_there(stood: Json) -> None:
    operator = Operator("owner.test", OWNER, "someone@example.com")
    record = autonomous(stood, operator)
    assert autonomous(record, operator) == record
    assert record["responsibleParty"]["did"] == OWNER
    assert record.get("x") == stood.get("x")


@given(FIELDS, st.text(max_size=300), st.text(max_size=80).map(lambda text: " ".join(text.split())))
def test_whatever_a_profile_holds_it_stays_and_once_is_enough(fields: Json, bio: str, contact: str) -> None:
    profile = {**fields, "description": bio}
    record, _ = honest(profile, contact=contact, line=CONTACT_LINE)
    assert honest(record, contact=contact, line=CONTACT_LINE)[0] == record
    assert {key: value for key, value in record.items() if key not in {"labels", "description"}} == {
        key: value for key, value in fields.items() if key != "labels"
    }
    if record["description"] != bio:
        assert grapheme_len(record["description"]) <= 256
        assert len(record["description"].encode()) <= 2560
    kept = [line for line in bio.split("\n") if line and not line.startswith(CONTACT)]
    assert [line for line in record["description"].split("\n") if line and not line.startswith(CONTACT)] == kept


async def test_age_and_peers_are_learnt_and_what_is_unknown_is_told(account: Account, tmp_path: Path) -> None:
    kit = account.network.create_account("kit.test", "kit-pass")
    names = PinnedNames(tmp_path / "names.json", FakeClock(), account.journal.record)
    owner = account.network.create_account("owner-new.test", "owner-pass")
    me = Me("rowan", "rowan.test", "owner.test", owner.did)
    surroundings = AccountContext(
        me=me, atproto=account.atproto, journal=account.journal, peers=("kit.test", "nobody.test"), names=names
    )
    assert surroundings.peers() == frozenset()
    await surroundings.learn()
    assert surroundings.peers() == {"kit.test", kit.did}
    assert surroundings.born_at() is None
    assert me.owner_handle == "owner-new.test"
    assert [message.split(":")[0] for message in account.warnings()] == [
        "Your handle is @owner-new.test now",
        "The peer @nobody.test could not be found",
    ]
    account.put(createdAt="2026-01-01T00:00:00.000Z")
    await surroundings.learn()
    born_at = surroundings.born_at()
    assert born_at
    assert born_at.day == 1


GET_RECORD = "com.atproto.repo.getRecord"


async def test_from_whom_it_takes_messages_is_declared_once(account: Account) -> None:
    for expected in ("written", "stands"):
        assert await account.disclosure(label=False, message_policy=MessagePolicy("all")).ensure() == Ok("off")
        told = [line for line in account.console.lines if "takes direct messages from" in line[1]]
        assert len(told) == 1, expected
    assert account.declaration() == {"$type": MESSAGES, "allowIncoming": "all", "allowGroupInvites": "none"}
    assert await account.points() == [3]


@pytest.mark.parametrize(("overrides", "stands"), [(False, "none"), (True, "following")])
async def test_the_owners_other_choice_stands_unless_the_setting_overrides_it(
    account: Account, *, overrides: bool, stands: str
) -> None:
    theirs = {"$type": MESSAGES, "allowIncoming": "none", "allowGroupInvites": "all", "x-more": 1}
    account.network.put(account.atproto.did, MESSAGES, "self", theirs)
    await account.disclosure(message_policy=MessagePolicy(overrides=overrides)).ensure()
    assert account.declaration() == theirs | {"allowIncoming": stands}


async def test_a_declaration_that_could_not_be_written_is_tried_again_and_the_profile_says_bot(
    account: Account,
) -> None:
    account.faults.arm(Fault("server_error", GET_RECORD, times=1))
    disclosure = account.disclosure(message_policy=MessagePolicy())
    assert isinstance(await disclosure.ensure(), Err)
    assert account.profile()["labels"] == BOT
    assert account.declaration() is None
    assert await disclosure.ensure() == Ok("stands")
    assert account.declaration()


@pytest.mark.parametrize(
    ("settings", "message_policy"),
    [
        ({}, MessagePolicy()),
        ({"SOUL_MESSAGES_FROM": "all", "SOUL_MESSAGE_DECLARATION": "always"}, MessagePolicy("all", overrides=True)),
        ({"SOUL_MESSAGE_DECLARATION": "off"}, None),
    ],
)
def test_the_settings_say_what_is_declared(
    tmp_path: Path, settings: dict[str, str], message_policy: MessagePolicy | None
) -> None:
    owner = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": OWNER, "SOUL_SPEED": "1"}
    assert message_policy_of(settings_of(write_home(tmp_path, "rowan", **owner, **settings))) == message_policy


SPEED = 1000
FIRST_LOOK_S, AN_HOUR_S = 60.0, 3600.0
MISSING = "No control by direct message"
FOLLOWED = "Follows @owner.test"


def follows(running_town: RunningTown) -> list[str]:
    """Return the addresses of Rowan's present follows of the owner."""
    owner = running_town.account("owner")
    found = running_town.network.index.follows.out_of(running_town.account("rowan"))
    return [record.uri for record in found if record.value["subject"] == owner]


async def told(life: RunningSoul) -> str:
    """Return the summaries in the journal, one a line."""
    return "\n".join(one.entry.summary for one in await life.app.services.journal.recent(100))


async def heartbeat(life: RunningSoul, seconds: float = FIRST_LOOK_S) -> None:
    life.passes(seconds / SPEED)
    await life.app.scheduler.run_guarded("heartbeat")
    await life.send()


async def test_the_owner_is_followed_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        for _ in range(3):
            await heartbeat(life)
        await heartbeat(life, AN_HOUR_S)
        told = [one.entry for one in await life.decisions() if one.entry.summary == FOLLOWED]
        (intent,) = await life.app.services.outbox.of_kind("follow", 5)
    assert len(follows(running_town)) == 1
    assert [(entry.reason, entry.intent_id) for entry in told] == [
        ("your SOUL follows you, its owner, to receive your direct messages", intent.id)
    ]


@pytest.mark.parametrize("stood_before", [True, False])
async def test_a_follow_of_the_owner_that_was_undone_by_hand_stays_undone(
    running_town: RunningTown, *, stood_before: bool
) -> None:
    home = running_town.make_home("rowan")
    rowan = running_town.account("rowan")
    if stood_before:
        record = {"subject": running_town.account("owner"), "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.create(rowan, FOLLOW, record)
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
        (uri,) = follows(running_town)
        assert bool(await life.app.services.outbox.of_kind("follow", 5)) is not stood_before
    running_town.network.delete(*uri.removeprefix("at://").split("/"))
    async with awake(home) as life:
        for _ in range(3):
            await heartbeat(life, AN_HOUR_S)
    assert follows(running_town) == []


async def test_another_owner_is_followed_too(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        for _ in range(2):
            await heartbeat(life)
    bea = running_town.account("bea")
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE": "bea.test", "OWNER_BLUESKY_SOCIAL_HANDLE_DID": bea}
    async with awake(running_town.make_home("rowan", **more)) as life:
        await heartbeat(life)
    found = running_town.network.index.follows.out_of(running_town.account("rowan"))
    assert [record.value["subject"] for record in found].count(bea) == 1


async def test_the_owner_is_followed_at_start_without_a_draft(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    async with awake(home) as life:
        await heartbeat(life, 0)
        assert not await life.app.services.outbox.held()
        assert len(follows(running_town)) == 1
        await heartbeat(life)
        assert MISSING not in await told(life)


async def test_where_the_follow_was_taken_back_each_start_says_what_is_missing(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
    (uri,) = follows(running_town)
    running_town.network.delete(*uri.removeprefix("at://").split("/"))
    async with awake(home) as life:
        for _ in range(2):
            await heartbeat(life)
        assert (await told(life)).count(MISSING) == 1
