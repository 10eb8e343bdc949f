"""Three SOULs on Bluesky's own server software: the manners that the town shows must hold there too."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.network.rig import Rig
from tests.running_town import KEY, Mind, RunningSoul, awake, call, replying, write_home
from tests.scenarios.real_people import Person, join
from town.model.service import model_app
from town.model.types import ChatRequest, Completion
from town.serving import serve

pytestmark = [pytest.mark.network, pytest.mark.timeout(240)]
SOULS = ("rowan", "wren", "sable")


@dataclass
class Street:
    """The people, the SOULs, their mind, and the network they share."""

    rig: Rig
    mind: Mind
    kit: Person
    people: dict[str, Person]
    souls: dict[str, RunningSoul]

    async def everyone_looks(self) -> None:
        for life in self.souls.values():
            self.rig.settle()
            await life.look()
        self.rig.settle()


@pytest.fixture
async def street(tmp_path: Path) -> AsyncIterator[Street]:
    rig = Rig.start()
    mind = Mind(replying("Slate, because it remembers the rain. Which would you pick?"))
    run = secrets.token_hex(3)
    async with AsyncExitStack() as stack:
        model_url = await stack.enter_async_context(serve(model_app(mind, api_key=KEY)))
        kit = await join(rig.pds, f"kit{run}", stack)
        people = {name: await join(rig.pds, f"{name}{run}", stack) for name in SOULS}
        rig.settle()
        souls = {}
        for name, person in people.items():
            home = write_home(
                tmp_path / name,
                name,
                AGENT_BLUESKY_USERNAME=person.handle,
                OWNER_BLUESKY_SOCIAL_HANDLE="owner.test",
                OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:nobodyhere",
                ATPROTO_SERVICE_URL=rig.pds,
                AI_GATEWAY_BASE_URL=f"{model_url}/v1",
            )
            souls[name] = await stack.enter_async_context(awake(home))
        yield Street(rig, mind, kit, people, souls)


async def test_a_mention_is_answered_once_by_the_one_it_names(street: Street) -> None:
    await street.kit.post(f"Morning @{street.people['rowan'].handle}, tin or slate?", street.people["rowan"])
    for _ in range(3):
        await street.everyone_looks()
    said = {name: await street.kit.texts_of(person) for name, person in street.people.items()}
    assert said == {
        "rowan": ["Slate, because it remembers the rain. Which would you pick?"],
        "wren": [],
        "sable": [],
    }


async def test_thanks_get_a_like_and_no_reply(street: Street) -> None:
    rowan = street.people["rowan"]
    post = await rowan.post("Tin sings, slate listens.")
    street.rig.settle()  # the AppView indexes accounts side by side: a reply before its parent would notify nobody
    thanks = await street.kit.post("thanks!", parent=post)
    for _ in range(2):
        await street.everyone_looks()
    assert await street.kit.texts_of(rowan) == ["Tin sings, slate listens."]
    assert await street.kit.likes_of(thanks["uri"]) == [rowan.handle]


async def test_a_thank_you_loop_between_two_souls_ends_by_itself(street: Street) -> None:
    count = itertools.count()

    def polite(request: ChatRequest) -> Completion:
        number = next(count)
        text = f"Thank you so much, friend number {number}, looking forward to hearing more from you soon!"
        return call("bluesky_reply", text=text) if request.force else Completion(text=text)

    street.mind.answer = polite
    rowan, wren = street.people["rowan"], street.people["wren"]
    await rowan.post(f"Thanks for the lamp advice @{wren.handle}, it glows again, and the shade is straight now.", wren)
    totals = []
    for _ in range(8):
        await street.everyone_looks()
        totals.append(len(await street.kit.texts_of(rowan)) + len(await street.kit.texts_of(wren)))
    assert totals[-1] == totals[-4], "nothing new was said in the last rounds"
    assert totals[-1] <= 5
