"""The page shows how residents grow: what changed in SELF.md, in what words, and what it grew from."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import Square
from tests.town.page.page_contrast import CONTRAST

pytestmark = pytest.mark.browser


def growth(words: str = "I ask about one thing at a time now.") -> dict[str, Any]:
    change = {
        "at": "2026-01-05T12:00:00.000Z",
        "version": "20260105T120000000Z",
        "reason": f"two talks turned on it {words}",
        "learned": words,
        "diff": ["-- Ask a lot.", f"+- 2026-01-05: {words}"],
        "because": [
            {"name": "e1", "type": "owner_guidance", "source": "terminal", "trust": "owner", "who": "", "about": words},
            {"name": "e2", "type": "helped_someone", "source": "bluesky", "trust": "stranger", "who": "", "about": ""},
        ],
    }
    read = {"at": change["at"], "question": f"What keeps moss off? {words}", "finding": words, "sources": []}
    return {"open": 0, "changes": [change, change], "readings": [read], "friction": []}


async def test_a_visitor_sees_what_a_resident_learned_and_why(page: Page, square: Square) -> None:
    await page.get_by_role("tab", name="Growing").click()
    await expect(page.get_by_text("Nobody has looked back yet.")).to_be_visible()
    square.status("maren", growth=growth())
    await expect(page.get_by_role("heading", name="What Maren learned today")).to_be_visible()
    newest = page.locator(".change").first
    await expect(newest.locator(".learned")).to_have_text("I ask about one thing at a time now.")
    await expect(newest.locator("[data-kind=gone]")).to_have_text("gone: Ask a lot.")
    await expect(newest.locator("[data-kind=new]")).to_have_text(
        "new: 2026-01-05: I ask about one thing at a time now."
    )
    await expect(newest.locator(".because li")).to_have_text(
        ["you said: I ask about one thing at a time now.", "it helped somebody it does not know"]
    )
    await expect(page.get_by_role("list", name="What it read")).to_contain_text(
        "It wanted to know: What keeps moss off?"
    )
    square.status("maren", growth=growth() | {"changes": []})
    await expect(page.locator(".change")).to_have_count(0)
    await expect(page.get_by_role("list", name="What it read")).to_be_visible()


async def test_what_is_written_there_stays_text_and_can_be_read_on_a_phone(
    browser: Browser, square: Square, watched: Watched
) -> None:
    square.status("odile", growth=growth(INJECTION + "W" * 200))
    for width in (390, 1280):
        context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark")
        page = await open_page(context, f"{square.url}/#growing", watched)
        await expect(page.locator(".grown")).to_have_count(1)
        await page.locator(".grown summary").click()
        assert await page.title() == "The town"
        assert await page.locator(".grown script, .grown img[src='x']").count() == 0
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert await page.evaluate(CONTRAST) == []
        await context.close()
    assert watched.complaints == []


async def test_odd_growth_leaves_the_rest_of_the_page_as_it_is(page: Page, square: Square) -> None:
    square.status("maren", growth={"changes": [{"diff": 7}]})
    square.status("tobias", growth=growth())
    await page.get_by_role("tab", name="Growing").click()
    await expect(page.get_by_role("heading", name="What Tobias learned today")).to_be_visible()
    await expect(page.locator("#people > li")).to_have_count(3)
