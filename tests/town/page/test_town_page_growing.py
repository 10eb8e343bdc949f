"""Proves that the page shows how residents grow: what changed in SELF.md, in what words, and what it grew from.

What a watcher sees first: who is writing, compact residents, and on a phone the box before all else. The page shows
the rituals of the residents: today's thread, the part of each, and the memos.
"""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import Square, draft
from tests.town.page.page_contrast import CONTRAST

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
    sources = ["https://bsky.app/profile/did:plc:kit/post/3k", "https://bsky.app/profile/did:plc:kit", "javascript:0"]
    read = {
        "at": change["at"],
        "question": f"What keeps moss off? {words}",
        "finding": words,
        "sources": sources,
        "post": sources[0],
    }
    waits = {"file": f"skills/{words}", "at": "", "reason": words, "why": words, "diff": [f"+{words}"]}
    met = {"description": words, "count": 2, "state": "mended", "stands": words, "countedAt": ""}
    grown = {"open": 0, "changes": [change, change], "readings": [read]}
    return grown | {"friction": [met] if "<" in words else [], "waiting": [waits] if "<" in words else []}


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
    read = page.get_by_role("list", name="What it read")
    await expect(read).to_contain_text("It wanted to know: What keeps moss off?")
    await expect(read).to_contain_text("It posted about it: show post")
    await expect(read.get_by_role("link")).to_have_text(["where", "show post"])
    square.status("maren", growth=growth() | {"changes": []})
    await expect(page.locator(".change")).to_have_count(0)
    await expect(page.get_by_role("list", name="What it read")).to_be_visible()


def friction(state: str, proposal: str = "", about: str = "", counted_at: str = "") -> dict[str, Any]:
    told = {"category": "tools", "description": "posts fail", "count": 4, "stands": about or "counted"}
    return told | {"state": state, "proposal": {"state": proposal, "about": about}, "countedAt": counted_at}


async def test_a_visitor_follows_what_goes_wrong_until_it_is_mended_and_says_yes(
    page: Page, square: Square, watched: Watched
) -> None:
    skill = {"file": "skills/in-one-piece", "at": "2026-01-05T12:00:00.000Z", "reason": "How I post.", "why": "a yes"}
    stages = page.get_by_role("list", name="How far it is").locator("[data-done=true]")
    waits = growth() | {"waiting": [skill | {"diff": ["+- I give the text in one piece."]}]}
    square.status("tobias", growth=growth() | {"friction": [friction("seen")]})
    await page.get_by_role("tab", name="Growing").click()
    await expect(page.locator(".grown")).to_contain_text("What else goes wrong now and then")
    await expect(page.locator(".grown")).to_contain_text("posts fail: 4 times, counted")
    await expect(stages).to_have_count(0)
    square.status("tobias", growth=growth() | {"friction": [friction("ready")]})
    await expect(stages).to_have_text(["seen"])
    square.status("tobias", growth=waits | {"friction": [friction("proposed", "waiting", "in-one-piece")]})
    await expect(stages).to_have_text(["seen", "proposed"])
    await expect(page.get_by_role("tab", name="Growing, 1 new")).to_be_visible()
    yes = page.get_by_role("button", name="Approve: skills/in-one-piece of Tobias")
    await expect(page.locator(".change", has=yes)).to_contain_text("I give the text in one piece.")
    square.hand.trouble = "It was changed since."
    await yes.click()
    await expect(page.locator("#growing").get_by_role("alert")).to_have_text("It was changed since.")
    square.hand.trouble = ""
    watched.complaints.clear()
    await yes.click()
    await expect(page.locator("#news")).to_have_text("Approved: it is read from now on")
    assert square.hand.decided == [("tobias.test", f"skills/in-one-piece@{skill['at']}", True)]
    square.status("tobias", growth=growth() | {"friction": [friction("proposed", "waiting", "in-one-piece")]})
    await expect(page.locator("#growing")).to_contain_text("it takes that up in a moment")
    taken = friction("proposed", "taken", "in-one-piece", "2026-01-05T13:00:00.000Z")
    square.status("tobias", growth=growth() | {"friction": [taken]})
    await expect(stages).to_have_text(["seen", "proposed", "approved"])
    await expect(page.locator("#growing")).to_contain_text("Seven of its days are counted before it says")
    square.status("tobias", growth=growth() | {"friction": [friction("mended", "mended", "mended: 4 before, 0 after")]})
    await expect(stages).to_have_text(["seen", "proposed", "approved", "mended"])
    square.status(
        "tobias", growth=growth() | {"friction": [friction("seen", "again", "open again: 4 before, 3 after")]}
    )
    await expect(stages).to_have_text(["seen"])
    await expect(page.locator("#growing")).to_contain_text("open again: 4 before, 3 after")


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
    square.status(
        "maren", growth={"changes": [{"diff": 7}], "waiting": [7, {}], "friction": [None, {"state": "proposed"}]}
    )
    square.status("tobias", growth=growth())
    await page.get_by_role("tab", name="Growing").click()
    await expect(page.get_by_role("heading", name="What Tobias learned today")).to_be_visible()
    await expect(page.locator("#people > li")).to_have_count(3)


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
