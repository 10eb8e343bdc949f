"""Proves over real HTTP how pictures reach a model that sees, and what one is told that does not."""

import base64
from collections.abc import AsyncIterator
from random import Random

import pytest

from common.clock import FakeClock
from common.errors import SoulError, Transient
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard, Vision
from modules.runtime.llm.dialect import Image, Message, Text
from modules.runtime.llm.gateway import MOST_PICTURES, LLMGateway
from tests.loopback import to_loopback
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, Wire, refuses, says

DOT = Image("media/a/1.png", "image/png", "a red dot")
GONE = Image("media/a/gone.png", "image/png", "a tree")
LOOK = [Message("user", (Text("look"), DOT, Text("well?")))]
SECRET = "hunter2-hunter2"
BYTES = SECRET.encode()
URL = f"data:image/webp;base64,{base64.b64encode(BYTES).decode()}"
SEEN = [
    {"type": "text", "text": "look"},
    {"type": "text", "text": "a red dot"},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "text", "text": "well?"},
]
TOLD = "look\na red dot\nwell?"
NOT_HERE = "Invalid content type. image_url is only supported by certain models."


class Store:
    """A media store that has all but what is gone; `asked` are the keys."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, key: str) -> tuple[str, bytes] | None:
        self.asked.append(key)
        return None if "gone" in key else ("image/webp", BYTES if key == DOT.key else key.encode())


class Gateways:
    """Makes gateways to the scripted model, and closes them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = Store()
        self.console = SilentConsole()
        self.made: list[LLMGateway] = []
        self.received: list[tuple[str, int, int]] = []

    def open(
        self, vision: Vision = "auto", *, model: str = "seer", blind: bool = False, max_retries: int = 3
    ) -> LLMGateway:
        opened = LLMGateway(
            transport=to_loopback,
            base_url=self.url,
            api_key="made-up",
            model=model,
            clock=FakeClock(),
            rng=Random(7),
            console=self.console,
            budget_guard=NoBudgetGuard(),
            redactor=Redactor([SECRET]),
            hydrate=None if blind else self.store.get,
            vision=vision,
            max_retries=max_retries,
            on_measured=lambda *told: self.received.append(told),
        )
        self.made.append(opened)
        return opened


@pytest.fixture
async def gateways(model: ScriptedModel) -> AsyncIterator[Gateways]:
    gateways = Gateways(model.url)
    yield gateways
    for opened in gateways.made:
        await opened.aclose()


def last_words(request: Wire) -> object:
    return request["messages"][-1]["content"]


@pytest.mark.parametrize("vision", ["on", "auto"])
async def test_a_picture_goes_with_its_description_and_with_its_bytes_untouched(
    gateways: Gateways, model: ScriptedModel, vision: Vision
) -> None:
    model.plays(says("red"))
    await gateways.open(vision).chat(LOOK)
    assert last_words(model.requests[0]) == SEEN
    assert gateways.received == []


async def test_words_beside_a_picture_are_still_searched_for_secrets(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("red"))
    await gateways.open().chat([Message("user", (Text(f"it is {SECRET}"), Image("k", "image/png", f"says {SECRET}")))])
    words = [part["text"] for part in model.requests[0]["messages"][0]["content"] if part["type"] == "text"]
    assert words == ["it is [redacted]", "says [redacted]"]


async def test_with_vision_off_or_no_store_the_description_goes_alone(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"), says("b"), says("c"))
    await gateways.open("off").chat(LOOK)
    await gateways.open(blind=True).chat(LOOK)
    await gateways.open(model="openai/gpt-4o-mini").chat(LOOK)
    assert [last_words(request) for request in model.requests] == [TOLD] * 3
    assert gateways.store.asked == []
    assert len(gateways.received) == 3


async def test_a_picture_that_is_gone_or_has_no_key_is_told(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"))
    await gateways.open().chat([Message("user", (GONE, Image("", "", "a hill")))])
    assert last_words(model.requests[0]) == "a tree\na hill"
    assert gateways.store.asked == ["media/a/gone.png"]


@pytest.mark.parametrize(
    "refusal",
    [
        refuses(400, NOT_HERE),
        refuses(404, "No endpoints found that support image input"),
        refuses(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    ],
)
async def test_a_model_that_cannot_see_is_told_at_once_and_not_shown_a_picture_again(
    gateways: Gateways, model: ScriptedModel, refusal: Reply
) -> None:
    model.plays(refusal, says("a"), says("b"))
    opened = gateways.open()
    assert await opened.chat(LOOK) == "a"
    assert await opened.chat(LOOK) == "b"
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, TOLD]
    assert len(gateways.console.lines) == 1
    assert len(gateways.store.asked) == 1


async def test_one_picture_that_is_refused_does_not_make_a_model_blind(
    gateways: Gateways, model: ScriptedModel
) -> None:
    model.plays(refuses(400, "Could not process image"), says("a"), says("b"))
    opened = gateways.open()
    await opened.chat(LOOK)
    await opened.chat(LOOK)
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, SEEN]


async def test_a_failure_that_only_speaks_of_images_is_tried_again(model: ScriptedModel) -> None:
    gateways = Gateways(model.url)
    model.plays(refuses(500, "failed to pull image for the worker"))
    opened = gateways.open(max_retries=0)
    with pytest.raises(Transient):
        await opened.chat(LOOK)
    assert opened.sees()
    await opened.aclose()


async def test_with_vision_on_the_next_picture_is_shown_all_the_same(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(refuses(400, NOT_HERE), says("a"), says("b"))
    opened = gateways.open("on")
    await opened.chat(LOOK)
    await opened.chat(LOOK)
    assert [last_words(request) for request in model.requests] == [SEEN, TOLD, SEEN]


async def test_words_about_pictures_are_no_lesson_where_none_was_sent(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(refuses(400, NOT_HERE))
    with pytest.raises(SoulError, match="image_url"):
        await gateways.open().chat([Message("user", "hello")])
    assert len(model.requests) == 1


async def test_only_the_newest_pictures_are_shown_each_in_its_place(gateways: Gateways, model: ScriptedModel) -> None:
    model.plays(says("a"))
    many = MOST_PICTURES + 3
    said = [Message("user", (Image(f"k{number}", "image/png", f"picture {number}"),)) for number in range(many)]
    await gateways.open().chat([*said, Message("user", "well?")])
    contents = [message["content"] for message in model.requests[0]["messages"]]
    assert contents[:3] == ["picture 0", "picture 1", "picture 2"]
    assert all(isinstance(content, list) for content in contents[3:many])
    urls = [content[1]["image_url"]["url"] for content in contents[3:many]]
    shown = [base64.b64decode(url.partition(",")[2]).decode() for url in urls]
    assert shown == [f"k{number}" for number in range(3, many)]
    assert sorted(gateways.store.asked) == sorted(shown)
