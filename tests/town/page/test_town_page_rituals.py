"""The page shows the rituals of the residents: today's thread, each one's part in it, and the memos."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import Square
from tests.town.page.page_contrast import CONTRAST

pytestmark = pytest.mark.browser


def ritual(thread: str, part: str, **changes: Any) -> list[dict[str, Any]]:
    told = {
        "name": "Almanac hour",
        "workspace": "www-lil-intdev-almanac",
        "role": "participant",
        "nextAt": "2026-01-06T07:00",
        "day": "2026-01-05",
        "thread": thread,
        "part": part,
        "note": "",
        "artefact": "",
    }
    return [told | changes]


async def test_a_visitor_sees_who_has_which_part_and_what_was_written(page: Page, square: Square) -> None:
    uri, _ = square.network.post_as(square.dids["maren"], "Almanac hour: which note no longer holds?")
    square.status("maren", rituals=ritual(uri, "critic", role="initiator"))
    square.status("odile", rituals=ritual(uri, "observer", artefact="https://github.test/a/b/issues/1#issuecomment-2"))
    square.status("tobias", rituals=ritual("", "", day=None))
    shown = page.locator(".ritual")
    await page.get_by_role("tab", name="Growing").click()
    await expect(shown.get_by_role("heading")).to_have_text("Almanac hour")
    await expect(shown.locator("li .ritual-who")).to_have_text(
        ["Marencriticno memo yet", "OdileobserverIts comment on the memo"]
    )
    await expect(shown.get_by_role("link")).to_have_attribute("href", "https://github.test/a/b/issues/1#issuecomment-2")
    await shown.get_by_role("button", name="See the thread").click()
    pointed = page.locator(".pointed")
    await expect(pointed).to_contain_text("which note no longer holds?")
    await expect(pointed).to_be_visible()


async def test_what_is_odd_stays_text_and_can_be_read_on_a_phone(
    browser: Browser, square: Square, watched: Watched
) -> None:
    square.status(
        "odile", rituals=ritual("at://x", INJECTION, name=INJECTION + "W" * 200, artefact="javascript:alert(1)")
    )
    square.status("maren", rituals=[{"name": 7, "thread": 9, "day": 5, "nextAt": 4}])
    for width in (390, 1280):
        context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme="dark")
        page = await open_page(context, f"{square.url}/#growing", watched)
        await expect(page.locator("#growing .ritual").first).to_be_visible()
        assert await page.title() == "The town"
        assert await page.locator("#rituals script, #rituals img[src='x'], #rituals a").count() == 0
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert await page.evaluate(CONTRAST) == []
        await context.close()
    assert watched.complaints == []
