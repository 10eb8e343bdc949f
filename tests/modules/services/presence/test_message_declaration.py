"""The account declares from whom it takes direct messages, once, and leaves the owner's other choice alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from common.result import Err, Ok
from modules.services.presence.policy import MESSAGES, MessagePolicy, message_policy_of
from tests.modules.services.presence.disclosing_account import Account
from tests.running_town import settings_of, write_home
from town.atproto.service import Fault

BOT = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}
OWNER = "did:plc:ownerownerownerownerowne"
GET = "com.atproto.repo.getRecord"


@pytest.mark.parametrize("incoming", ["all"])
async def test_from_whom_it_takes_messages_is_declared_once(
    account: Account, incoming: Literal["following", "all"]
) -> None:
    for expected in ("written", "stands"):
        assert await account.disclosure(label=False, message_policy=MessagePolicy(incoming)).ensure() == Ok("off")
        told = [line for line in account.console.lines if "takes direct messages from" in line[1]]
        assert len(told) == 1, expected
    assert account.declaration() == {"$type": MESSAGES, "allowIncoming": incoming, "allowGroupInvites": "none"}
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
    account.faults.arm(Fault("server_error", GET, times=1))
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
