"""The room in a real browser: a visitor follows the talk, speaks as its host, and is protected from what is said."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import GITHUB, Square
from tests.town.page.page_contrast import CONTRAST
from tests.town.page.room_guests import guest
from town.github.arrangement import REQUESTS

pytestmark = pytest.mark.browser
BOX = "Speak as the host"


async def enter(page: Page) -> None:
    await page.get_by_role("tab", name="The room").click()
    await expect(page.locator("#room")).to_be_visible()


async def test_the_visitor_asks_and_the_room_answers(page: Page, square: Square) -> None:
    await enter(page)
    await expect(page.get_by_text("Nobody has come in yet.")).to_be_visible()
    async with guest(square.room.url, "maren") as maren, guest(square.room.url, "sh-marvin", "10.1.0"):
        await expect(page.locator(".here strong")).to_have_text(["Maren", "sh-marvin"])
        await page.get_by_role("button", name="Mention Maren").last.click()
        await page.get_by_label(BOX).press_sequentially("what would you change first?")
        await page.get_by_label(BOX).press("Enter")
        assert (await maren.receive("chat"))["addressed"] == ["maren"]
        await expect(page.get_by_label(BOX)).to_have_value("")
        await expect(page.locator(".said.host .words")).to_have_text("@maren what would you change first?")
        await expect(page.locator(".said.host .mention")).to_have_text("@maren")
        await maren.tell("typing")
        await expect(page.locator(".typing")).to_have_text("Maren is writing …")
        await maren.tell("chat", content="The **bench**, *first*; it is `oak`.")
        await expect(page.locator(".said").last.locator(".words")).to_have_text("The bench, first; it is oak.")
        await expect(page.locator(".words strong")).to_have_text("bench")
        await expect(page.locator(".typing")).to_have_text("")
    await expect(page.locator(".event.left")).to_have_count(2)


async def test_work_shows_as_quiet_rows_and_only_links_into_the_town_lead_anywhere(page: Page, square: Square) -> None:
    await enter(page)
    async with guest(square.room.url, "tobias") as tobias:
        link = f"{GITHUB}/you/town-square/issues/1"
        await tobias.tell("claim", action="create_issue", target="you/town-square")
        await tobias.tell("state", state="blocked", detail="no key")
        await tobias.tell("action_result", action="create_issue", target="you/town-square", success=True, link=link)
        await tobias.tell(
            "chat", content=f"Done: {link}. Not {GITHUB}0/x, https://evil.example/x or javascript:alert(1)"
        )
        await expect(page.locator(".event.claimed p")).to_have_text("Tobias works on an issue in town-square")
        await expect(page.locator(".event.blocked p")).to_have_text("Tobias is stuck: no key")
        links = page.locator("#room a")
        await expect(links).to_have_text(["you/town-square #1", "you/town-square #1"])
        assert await links.first.get_attribute("href") == link
        assert await links.first.get_attribute("rel") == "noopener noreferrer"


async def test_what_agents_say_and_are_called_is_only_text(page: Page, square: Square) -> None:
    await enter(page)
    async with guest(square.room.url, INJECTION[:90]) as bad:
        await bad.tell("chat", content=INJECTION)
        await bad.tell("reflection", summary=INJECTION)
        await bad.tell("state", state="acting", detail=INJECTION)
        await expect(page.locator(".said .words")).to_have_text(INJECTION)
        await expect(page.locator(".event.reflected")).to_contain_text("onerror")
        assert await page.title() == "The town"
        await expect(page.locator("#room img:not(.face), #room script, #room a")).to_have_count(0)


async def test_what_is_said_while_nobody_looks_is_counted_until_they_do(page: Page, square: Square) -> None:
    async with guest(square.room.url, "odile") as odile:
        await odile.tell("chat", content="Tea first.")
        await expect(page.get_by_role("tab", name="The room, 1 new")).to_be_visible()
        await expect(page.locator("#news")).to_have_text("Odile in the room")
        await enter(page)
        await expect(page.locator(".new-count")).to_be_hidden()
        await page.get_by_role("tab", name="The room").press("ArrowLeft")
        await expect(page.locator("#square")).to_be_visible()
        await expect(page.get_by_role("tab", name="The square")).to_be_focused()


async def test_who_reads_further_up_is_not_torn_away(page: Page, square: Square) -> None:
    await enter(page)
    async with guest(square.room.url, "odile") as odile:
        for number in range(40):
            square.room.server.broadcast_from_host(f"line {number}")
        await expect(page.locator(".said .words").last).to_have_text("line 39")
        log = page.locator(".log")
        assert await log.evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight") < 2
        await log.evaluate("one => { one.scrollTop = 0; }")
        await expect(page.locator(".down")).to_be_visible()
        await odile.tell("chat", content="And tea.")
        await expect(page.locator(".down")).to_have_text("1 new ↓")
        assert await log.evaluate("one => one.scrollTop") == 0
        await page.locator(".down").click()
        await expect(page.locator(".down")).to_be_hidden()
        await expect(page.get_by_label(BOX)).to_be_focused()


async def test_a_line_break_is_no_end_and_a_refusal_keeps_the_words(page: Page, square: Square) -> None:
    await enter(page)
    box = page.get_by_label(BOX)
    await box.press_sequentially("one")
    await box.press("Shift+Enter")
    await box.press_sequentially("two")
    await expect(box).to_have_value("one\ntwo")
    await box.fill("x" * 4001)
    await expect(page.locator("#room .count")).to_have_text("-1 left")
    await box.press("Enter")
    await expect(box).to_have_value("x" * 4001)
    assert square.room.view.rows() == []


async def test_a_newcomer_finds_something_to_ask(page: Page, square: Square) -> None:
    await enter(page)
    await page.get_by_role("button", name="adds up expenses").click()
    await expect(page.get_by_label(BOX)).to_be_focused()
    await page.get_by_label(BOX).press("Enter")
    await expect(page.locator(".said.host .words")).to_contain_text(REQUESTS[0])
    await expect(page.locator("#room .empty")).to_be_hidden()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_room_is_readable_and_fits_on_phone_and_desktop(
    browser: Browser, square: Square, watched: Watched, scheme: str, width: int
) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    async with guest(square.room.url, "maren") as maren, guest(square.room.url, "x" * 90) as other:
        page = await open_page(context, f"{square.url}/#room", watched)
        square.room.server.broadcast_from_host("Good evening. " + "w" * 200)
        await maren.tell("chat", content="A `word` and **more**: " + f"{GITHUB}/you/town-square/issues/1")
        await other.tell("action_result", action="review", target="y" * 300, success=False, error="no")
        await maren.tell("state", state="acting", detail="create_issue")
        await expect(page.locator(".event.failed")).to_have_count(1)
        await expect(page.locator('.here li[data-state="acting"]')).to_have_count(1)
        assert await page.evaluate(CONTRAST) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = await page.locator("#room .box").bounding_box()
        assert box
        room = await page.locator("#room").bounding_box()
        assert room
        assert box["y"] + box["height"] <= room["y"] + room["height"] + 1
    await context.close()
    assert watched.complaints == []
