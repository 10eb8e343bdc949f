"""The profile says that it is a bot's, and whose; nothing that stood there before is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock
from common.result import Ok
from common.text.graphemes import grapheme_len
from modules.services.outbox.account import AccountContext
from modules.services.pinned_names.store import PinnedNames
from modules.services.presence.policy import AUTONOMY, Level, Operator, autonomous, honest, operator_of
from tests.modules.services.presence.disclosing_account import Account
from tests.patience import until
from tests.running_town import settings_of, write_home
from tests.shipped_skills import CONTACT, CONTACT_LINE
from town.atproto.index import PROFILE, Json
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
    account.put(displayName="Rowan", labels=BOT)
    before = account.profile()
    assert await account.disclosure(label=False, contact="someone@example.com").ensure() == Ok("off")
    assert account.profile() == before
    assert account.autonomy() is None
    assert len(account.warnings()) == 1
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
    surroundings = AccountContext(
        atproto=account.atproto, journal=account.journal, peers=("kit.test", "nobody.test"), names=names
    )
    assert surroundings.peers() == frozenset()
    await surroundings.learn()
    assert surroundings.peers() == {"kit.test", kit.did}
    assert surroundings.born_at() is None
    assert [message.split(":")[0] for message in account.warnings()] == ["The peer @nobody.test could not be found"]
    account.put(createdAt="2026-01-01T00:00:00.000Z")
    await surroundings.learn()
    born_at = surroundings.born_at()
    assert born_at
    assert born_at.day == 1
