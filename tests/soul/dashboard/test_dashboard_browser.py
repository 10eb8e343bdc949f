"""Proves the owner's page in a browser: on a phone and on a desktop, by keyboard alone, updated by itself."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, async_playwright, expect

from common.clock import SystemClock
from common.settings import load_settings
from modules.runtime.control import Control
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from soul.dashboard.serving import serving_dashboard
from tests.running_town import RunningTown, awake
from tests.town.page.browsing import ARGS, CHROMIUM, INJECTION
from tests.town.page.page_contrast import CONTRAST

pytestmark = pytest.mark.browser

BROKEN_WORDS = """[...document.querySelectorAll("th")].map((one) => one.firstChild).filter((text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return !/\\s/.test(text.textContent.trim()) && range.getClientRects().length > 1;
}).map((text) => text.textContent)"""
LOW = """[...document.querySelectorAll("a, button, summary, input:not([type=hidden]), select, textarea")
].filter((one) => {
  const box = (one.type === "checkbox" ? one.closest("label") : one).getBoundingClientRect();
  return one.checkVisibility() && box.width > 1 && box.left >= 0 && box.height < 44;
}).map((one) => one.outerHTML)"""
"""Controls that are too low for a finger; the skip link lies left of the page until it has the focus."""
PHONE = 390
NARROW = """[...document.querySelectorAll("main li > p, main h2")].filter((one) => {
  return one.checkVisibility() && one.getBoundingClientRect().width < 0.8 * one.closest(".panel").clientWidth - 40;
}).map((one) => one.outerHTML)"""
"""Text that gets only part of its panel's width."""
PAGES = ("", "talk", "work", "memory", "people", "growing", "spending", "log", "settings", "why")


async def test_the_owner_sees_and_decides_on_a_phone_and_by_keyboard(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    settings = load_settings(home.root).model_copy(update={"dashboard_port": 0})
    async with (
        awake(home) as life,
        serving_dashboard(settings, home, SystemClock()) as address,
        async_playwright() as playwright,
    ):
        uri, _ = running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
        await life.look()
        outbox = life.app.services.outbox
        reason = "what the neighbours say of roofs and of rain came up with two who do not know of each other"
        grown = Entry("decision", "self", "SELF.md changed", reason=reason, data={"status": "changed"})
        await life.app.services.journal.record(grown)
        drafts = [
            (await outbox.submit(ProposedAction(PostBody(text=text)))).intent
            for text in ("Tin roofs sing.", INJECTION + "W" * 150)
        ]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGS))
        complaints: list[str] = []
        names = (*PAGES, f"why?of={quote(uri)}")
        for width, scheme in ((PHONE, "dark"), (1280, "light")):
            await look_at_all(browser, address, width, scheme, complaints=complaints, names=names)
        page = await browser.new_page()
        await page.goto(address)
        await expect(page.get_by_role("paragraph").filter(has_text="Tin roofs sing.")).to_be_visible()
        assert await page.title() == "rowan: now"

        button = page.locator(f"#draft-{drafts[0].id}").get_by_role("button", name="Approve")
        for _ in range(40):
            await page.keyboard.press("Tab")
            if await button.evaluate("node => node === document.activeElement"):
                break
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Approved")
        await expect(button).to_have_count(0)
        assert await page.locator(f"#draft-{drafts[0].id}").get_by_role("button", name="Reject").is_visible()

        Control(home.memory).pause("tea")
        await expect(page.get_by_role("heading", name="What is wrong")).to_be_visible()
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("heading", name="What is wrong")).to_have_count(0)

        other = await browser.new_page()
        for tab in (page, other):
            await tab.goto(address)
            await tab.goto(address.partition("?")[0] + "talk")
        await page.get_by_role("list", name="The conversation").click()
        await other.get_by_label("Your message").fill("Is it raining?")
        await other.get_by_role("button", name="Send").click()
        await expect(page.get_by_text("Is it raining?")).to_be_visible()
        await browser.close()
        assert complaints == []


async def look_at_all(
    browser: Browser, address: str, width: int, scheme: Any, *, complaints: list[str], names: Sequence[str]
) -> None:
    """Open each page at that width: nothing sticks out, all can be read, and no injected script runs."""
    context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = await context.new_page()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(address)
    for name in names:
        await page.goto(address.partition("?")[0] + name)
        await expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth"), name
        assert await page.evaluate(CONTRAST) == [], name
        assert await page.evaluate(BROKEN_WORDS) == [], name
        assert await page.evaluate(NARROW) == [], name
        assert width > PHONE or await page.evaluate(LOW) == [], name
        assert await page.locator("main script, main img").count() == 0
    await context.close()
