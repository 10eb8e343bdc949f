"""What a watcher sees first: somebody who is writing, compact residents, and on a phone the box before all else."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from tests.town.page.browsing import Watched, open_page
from tests.town.page.conftest import Square, draft

pytestmark = pytest.mark.browser


async def test_what_is_said_to_nobody_shows_who_is_writing_until_the_answer_comes(page: Page, square: Square) -> None:
    square.status("odile")
    await expect(page.locator("#write .names > span")).to_have_text("To anyone, or")
    await page.get_by_label("Say something as you").fill("I am repotting my lemon tree.")
    await page.get_by_role("button", name="Post", exact=True).click()
    line = page.locator(".thread .writing")
    await expect(line).to_have_text("Odile is writing …")
    square.say("odile", "Then it will sulk for a week.", square.network.posts()[0].uri)
    await expect(page.locator(".post.new .text")).to_have_count(2)
    await expect(line).to_be_hidden()


async def test_a_like_is_an_answer_and_who_is_asleep_writes_nothing(page: Page, square: Square) -> None:
    square.status("maren")
    uri = square.say("you", "@maren.test @tobias.test good evening")
    line = page.locator(".thread .writing")
    await expect(line).to_have_text("Maren is writing …")
    square.like("maren", uri)
    await expect(line).to_be_hidden()


async def test_a_name_typed_takes_the_place_of_anyone(page: Page) -> None:
    await page.get_by_role("button", name="Mention Maren").first.click()
    await expect(page.locator("#write .names > span")).to_have_text("To")


async def test_residents_are_compact_and_open_by_a_click(page: Page, square: Square) -> None:
    for who in ("maren", "tobias", "odile"):
        square.status(who, decisions=[{"at": "2026-01-05T12:00:00.000Z", "summary": "[space] Spoke", "reason": "x"}])
    await expect(page.locator(".lately")).to_have_text(["In the room: Spoke"] * 3)
    heights = await page.locator(".person").evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert max(heights) < 110
    await expect(page.locator(".inside").first).to_be_hidden()
    await page.locator(".person summary").first.click()
    await expect(page.locator(".inside").first).to_be_visible()


async def test_on_a_phone_tabs_and_box_come_first(browser: Browser, square: Square, watched: Watched) -> None:
    square.say("maren", "Low tide.")
    square.status("odile", drafts=[draft()])
    context = await browser.new_context(viewport={"width": 390, "height": 844})
    page = await open_page(context, square.url, watched)
    await expect(page.locator(".post")).to_have_count(1)
    tops = [
        await page.locator(place).evaluate("one => one.getBoundingClientRect().top")
        for place in ("#places", "#write", "#drafts", "#people", "#feed")
    ]
    assert tops == sorted(tops)
    assert await page.locator("#write").evaluate("one => one.getBoundingClientRect().bottom") < 500
    faces = await page.locator(".person").evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert len(set(faces)) == 1, "side by side"
    await page.get_by_role("tab", name="The room").click()
    box = page.locator("#room .box")
    assert await box.evaluate("one => one.getBoundingClientRect().bottom") <= 844
    await page.set_viewport_size({"width": 1280, "height": 844})
    await expect(page.locator(".page > #side:last-child")).to_have_count(1)
    await context.close()


@pytest.mark.parametrize(
    ("text", "direction"), [("مرحبا، كيف حالكم؟", "rtl"), ("你好", "ltr"), ("안녕하세요", "ltr"), ("こんにちは", "ltr")]
)
async def test_every_script_has_a_font_and_its_direction(page: Page, square: Square, text: str, direction: str) -> None:
    square.say("you", text)
    words = page.locator(".post .text")
    await expect(words).to_have_text(text)
    look = await words.evaluate("one => [getComputedStyle(one).direction, getComputedStyle(one).fontFamily]")
    assert look[0] == direction
    for font in ("Noto Serif CJK SC", "Noto Serif CJK JP", "Noto Serif CJK KR", "Noto Naskh Arabic"):
        assert font in look[1]
