"""Tests of the page in a real browser: what a person sees, does, and is protected from.

Tests of the room in a real browser: a visitor follows the talk, speaks as its host, and is protected from messages.
"""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlparse

import pytest
from playwright.async_api import Browser, Page, expect

from common.clock import iso
from tests.town.page.browsing import INJECTION, Watched, open_page
from tests.town.page.conftest import BUDGET, GITHUB, STORY, Square, draft
from tests.town.page.page_contrast import CONTRAST
from tests.town.page.room_guests import guest
from town.github.arrangement import REQUESTS
from town.page.app import Told, ToldStep
from town.serving import serve

pytestmark = pytest.mark.browser


async def test_posts_are_shown_as_threads_with_who_liked_them(page: Page, square: Square) -> None:
    await expect(page.locator("#empty")).to_be_visible()
    root = square.say("maren", "A barometer falls. @tobias.test, which needle?")
    answer = square.say("tobias", "The long one.", root)
    square.say("odile", "The kettle knows.", root)
    square.like("maren", answer)
    square.like("you", answer)
    thread = page.locator(".thread")
    await expect(thread).to_have_count(1)
    await expect(thread.locator(".post .text")).to_have_text(
        ["A barometer falls. @tobias.test, which needle?", "The long one.", "The kettle knows."]
    )
    await expect(thread.locator(".mention")).to_have_text("@tobias.test")
    await expect(thread.locator(".post").nth(1).locator(".liked")).to_have_text("Liked by you and Maren")
    await expect(thread.locator(".post").nth(2).locator(".to")).to_have_text("to Maren")
    await expect(page.locator("#empty")).to_be_hidden()
    faces = await page.locator(".post img.face").evaluate_all(
        "all => all.every(one => one.complete && one.naturalWidth)"
    )
    assert faces


async def test_the_pictures_of_a_post_are_shown_with_the_words_for_those_who_cannot_see_them(
    page: Page, square: Square
) -> None:
    square.show("odile", "Drawn by hand.", "threads.png", 'Crossing threads"><script>alert(1)</script>')
    image = page.locator(".post .pictures img")
    await expect(image).to_have_count(1)
    await expect(image).to_have_attribute("alt", 'Crossing threads"><script>alert(1)</script>')
    await image.evaluate("one => one.decode()")
    width, shown = await image.evaluate("one => [one.naturalWidth, one.getBoundingClientRect().width]")
    assert width == 1000
    assert 0 < shown <= await page.evaluate("innerWidth")
    square.say("odile", "Words alone.")
    await expect(page.locator(".post").first.locator(".pictures")).to_have_count(0)


async def test_a_new_post_arrives_by_itself_and_is_announced(page: Page, square: Square) -> None:
    square.say("you", "first")
    await expect(page.locator(".post")).to_have_count(1)
    square.say("odile", "second")
    await expect(page.locator(".thread").first.locator(".text")).to_have_text("second")
    await expect(page.locator("#news")).to_have_text("New from Odile")


async def test_writing_as_you_reaches_the_network_and_the_page(page: Page, square: Square) -> None:
    box = page.get_by_label("Say something as you")
    await page.get_by_role("button", name="Mention Odile").first.click()
    await box.press_sequentially("what is for supper?")
    await page.get_by_role("button", name="Post", exact=True).click()
    await expect(page.locator(".post .text")).to_have_text("@odile.test what is for supper?")
    await expect(page.locator(".post strong")).to_have_text("You")
    await expect(box).to_have_value("")
    assert square.network.posts()[0].author.did == square.dids["you"]


async def test_typing_a_name_narrows_the_suggestions_and_completes_it(page: Page) -> None:
    box = page.get_by_label("Say something as you")
    await box.press_sequentially("Good evening @to")
    suggestions = page.locator("#write .names button")
    await expect(suggestions).to_have_text(["Tobias"])
    await suggestions.click()
    await expect(box).to_have_value("Good evening @tobias.test ")
    await expect(box).to_be_focused()


async def test_a_reply_by_keyboard_lands_in_its_thread_while_others_go_on(page: Page, square: Square) -> None:
    root = square.say("maren", "Glass or sky?")
    await page.get_by_role("button", name="Reply to Maren").press("Enter")
    box = page.get_by_label("Reply to Maren", exact=True).and_(page.locator("textarea"))
    await expect(box).to_be_focused()
    await box.press_sequentially("The sky, ")
    square.say("tobias", "Something else entirely")
    await expect(page.locator(".thread")).to_have_count(2)
    await expect(box).to_be_focused()
    await box.press_sequentially("mostly.")
    await box.press("Control+Enter")
    await expect(page.locator(".thread", has_text="Glass or sky?").locator(".text")).to_have_text(
        ["Glass or sky?", "The sky, mostly."]
    )
    await expect(page.locator("#feed textarea")).to_have_count(0)
    reply = square.network.posts()[0].reply
    assert reply
    assert reply.parent.uri == root


async def test_a_post_that_is_too_long_cannot_be_sent_and_says_by_how_much(page: Page) -> None:
    box = page.get_by_label("Say something as you")
    await box.fill("👩‍👩‍👧‍👦" * 299 + "ab")
    await expect(page.locator("#write .count")).to_have_text("-1 left")
    await expect(page.get_by_role("button", name="Post", exact=True)).to_be_disabled()
    await box.fill("👩‍👩‍👧‍👦" * 10)
    await expect(page.get_by_role("button", name="Post", exact=True)).to_be_enabled()


async def test_a_refusal_is_shown_and_the_words_are_kept(page: Page, square: Square, watched: Watched) -> None:
    square.say("maren", "Soon gone")
    await page.get_by_role("button", name="Reply to Maren").click()
    box = page.locator("#feed textarea")
    await box.fill("Wait")
    square.network.delete(square.dids["maren"], "app.bsky.feed.post", square.network.posts()[0].uri.rpartition("/")[2])
    await box.press("Control+Enter")
    await expect(page.locator(".problem:visible")).to_contain_text("gone")
    await expect(box).to_have_value("Wait")
    assert any("400" in complaint for complaint in watched.complaints)
    watched.complaints.clear()


async def test_foreign_text_stays_text(page: Page, square: Square) -> None:
    did = square.network.create_account("mallory.test", "pw", display_name=INJECTION[:60]).did
    square.network.post_as(did, INJECTION)
    now = iso(datetime.now(UTC))
    decision = {"at": now, "summary": INJECTION, "reason": INJECTION, "triggerUri": "javascript:alert(1)"}
    standing = {"paused": True, "safeMode": False, "reasons": [INJECTION]}
    held = draft(text=INJECTION, why=INJECTION, kind=INJECTION, id=INJECTION)
    square.status(
        "maren", mode=INJECTION, decisions=[decision], counts={"posts": INJECTION}, standing=standing, drafts=[held]
    )
    step = ToldStep("", INJECTION, (INJECTION,))
    square.hand.stories[square.say("maren", "Ask me why.")] = Told(INJECTION, (step,), INJECTION)
    await page.get_by_role("button", name="Why did Maren write this?").click()
    await expect(page.locator(".story")).to_contain_text("<script>")
    await page.locator(".story summary").click()
    await expect(page.locator(".post .text").last).to_have_text(INJECTION)
    await page.locator("#people summary").first.click()
    await expect(page.locator(".decision").first).to_contain_text("<script>")
    assert await page.title() == "The town"
    assert await page.locator("main script, main img:not(.face), main [onerror], a[href^='javascript']").count() == 0


async def test_the_residents_show_what_they_do_and_why(page: Page, square: Square) -> None:
    uri = square.say("you", "@maren.test will it rain?")
    now = datetime.now(UTC)
    decision = {"at": iso(now), "summary": "Replied to @you.test", "reason": "they asked", "triggerUri": uri}
    square.status("maren", nextExpressionAt=iso(now + timedelta(seconds=95)), decisions=[decision])
    square.status("tobias", mode="awareness")
    resting = {"service": "Bluesky", "what": "Bluesky asked us to wait", "until": iso(now + timedelta(seconds=95))}
    square.status("odile", nextExpressionAt=iso(now + timedelta(seconds=35)), troubles=[resting])
    await expect(page.locator("#people .doing")).to_have_text(
        [
            re.compile(r"Listening, next thought in 1:\d\d$"),
            "Reading what reached it",
            re.compile(r"Waits: Bluesky asked us to wait, goes on in 1:\d\d$"),
        ]
    )
    card = page.locator(".person").first
    await expect(card).not_to_have_attribute("open", "")
    await card.locator("summary").click()
    await expect(card.locator("dd")).to_have_text(["4", "3", "2", "1"])
    await expect(card.locator(".why")).to_have_text("Why: they asked")
    await card.get_by_role("link", name="show post").click()
    await expect(page.locator(".post.pointed .text")).to_have_text("@maren.test will it rain?")


async def test_a_post_of_a_resident_tells_why_by_keyboard_and_yours_does_not_ask(page: Page, square: Square) -> None:
    root = square.say("you", "@maren.test will it rain?")
    square.hand.stories[square.say("maren", "Before supper.", root)] = STORY
    why = page.get_by_role("button", name="Why did Maren write this?")
    await expect(why).to_have_count(1)
    await expect(page.get_by_role("button", name=re.compile("^Why"))).to_have_count(1)
    await why.focus()
    await page.keyboard.press("Enter")
    story = page.get_by_role("region", name="Why, told of Maren")
    await expect(story.get_by_role("heading")).to_have_text("Why: reply to @you.test (done)")
    await expect(story.locator(".lead")).to_contain_text("You wrote to it, it wrote an answer")
    await expect(story.get_by_role("listitem").first).to_be_hidden()
    await story.get_by_text("Every step (5)").click()
    await expect(story.get_by_role("listitem")).to_have_count(5)
    await why.focus()
    await expect(story).to_contain_text("1,539 tokens in, 33 out, $0.0004")
    await expect(story).to_contain_text("Because: question asked")
    await expect(why).to_have_attribute("aria-expanded", "true")
    square.say("tobias", "Something else entirely")
    await expect(page.locator(".thread")).to_have_count(2)
    await expect(story).to_be_visible()
    await expect(why).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(story).to_be_hidden()


async def test_a_story_that_is_not_known_says_so(page: Page, square: Square, watched: Watched) -> None:
    square.say("maren", "From before the journal.")
    await page.get_by_role("button", name="Why did Maren write this?").click()
    await expect(page.locator(".story")).to_contain_text("was never seen")
    assert any("404" in complaint for complaint in watched.complaints)
    watched.complaints.clear()


async def test_the_budget_is_a_bar_that_moves_and_says_its_step(page: Page, square: Square) -> None:
    square.status("maren")
    card = page.locator(".person").first
    await card.locator("summary").click()
    bar = card.get_by_role("meter", name="Maren's model budget of today")
    await expect(bar).to_have_attribute("aria-valuenow", "16")
    await expect(card).to_contain_text("16 % used, all is well")
    await expect(card).to_contain_text("24,310 of 150,000 tokens")
    dollars = {"used": 0.87, "cap": 1.0}
    square.status("maren", modelBudget=BUDGET | {"step": "pressing", "usd": dollars})
    await expect(bar).to_have_attribute("aria-valuetext", "87 % used, works only for you, mentions and commitments")
    await expect(card).to_contain_text("$0.8700 of $1.00")


async def test_a_resident_is_paused_and_goes_on_at_a_button(page: Page, square: Square) -> None:
    square.status("maren")
    await page.locator(".person summary").first.click()
    await page.get_by_role("button", name="Pause Maren").click()
    await expect(page.locator("#news")).to_have_text("Maren is paused")
    paused = {"paused": True, "safeMode": False, "reasons": ["paused by the owner: on the town's page"]}
    square.status("maren", standing=paused)
    card = page.locator(".person").first
    await expect(card.locator(".mark")).to_have_text("paused")
    await expect(card.locator(".doing")).to_have_text("Only listening")
    await expect(card).to_contain_text("Nothing public leaves: paused by the owner: on the town's page")
    await page.get_by_role("button", name="Let Maren go on").click()
    await expect(page.locator("#news")).to_have_text("Maren may go on")
    assert square.hand.paused == [("maren.test", True), ("maren.test", False)]
    square.status("maren", standing=paused | {"safeMode": True})
    await expect(card.locator(".mark")).to_have_text("safe mode")


async def test_a_draft_shows_what_to_whom_and_why_and_takes_a_yes_or_a_no(page: Page, square: Square) -> None:
    to = square.say("tobias", "Thirteen hinges on one gate.")
    first = draft(target=to)
    second = draft(
        id="cafe02", kind="like", act="like of @tobias.test", text="", target=to, createdAt="2099-01-01T00:00:00.000Z"
    )
    asks = page.get_by_role("region", name="Waits for your approval")
    await expect(asks).to_be_hidden()
    square.status("odile", drafts=[second, first])
    await expect(asks.get_by_role("listitem")).to_have_count(2)
    await expect(asks.get_by_role("listitem").first).to_contain_text("Odile: reply to @tobias.test")
    await expect(asks).to_contain_text("The kettle knows before the window does.")
    await expect(asks).to_contain_text("It waits: addressed to a stranger: tobias.test")
    await asks.get_by_role("link", name="show post").first.click()
    await expect(page.locator(".post.pointed .text")).to_have_text("Thirteen hinges on one gate.")
    yes = page.get_by_role("button", name="Approve: reply to @tobias.test by Odile")
    await yes.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#news")).to_have_text("Approved: it leaves at its turn")
    await page.get_by_role("button", name="Reject: like of @tobias.test by Odile").click()
    await expect(page.locator("#news")).to_have_text("Rejected: it stays unsaid")
    assert square.hand.decided == [("odile.test", "cafe01", True), ("odile.test", "cafe02", False)]
    square.status("odile", drafts=[])
    await expect(asks).to_be_hidden()


async def test_a_decision_that_comes_too_late_is_said_and_can_be_tried_again(
    page: Page, square: Square, watched: Watched
) -> None:
    square.hand.trouble = "cafe01 does not wait any more: it is expired"
    square.status("odile", drafts=[draft()])
    yes = page.get_by_role("button", name="Approve: reply to @tobias.test by Odile")
    await yes.click()
    await expect(page.get_by_role("alert").filter(has_text="does not wait any more")).to_be_visible()
    await expect(yes).to_be_enabled()
    assert any("400" in complaint for complaint in watched.complaints)
    watched.complaints.clear()


async def test_the_page_names_the_mind(page: Page) -> None:
    await expect(page.locator("#about")).to_contain_text("small scripted mind, not a language model")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "width", [pytest.param(320, marks=pytest.mark.smoke), 390, pytest.param(1280, marks=pytest.mark.smoke)]
)
async def test_nothing_is_wider_than_the_screen_and_words_stand_out_in_either_light(
    browser: Browser, square: Square, watched: Watched, scheme: str, width: int
) -> None:
    square.say("you", "W" * 300)
    square.say("maren", "https://example.com/" + "a" * 200)
    decision = {"at": iso(datetime.now(UTC)), "summary": "x" * 90, "reason": "y" * 90}
    standing = {"paused": True, "safeMode": False, "reasons": ["z" * 90]}
    held = draft(text="W" * 300, why="w" * 90)
    square.status("maren", decisions=[decision], standing=standing, drafts=[held])
    long = "v" * 90
    square.hand.stories = dict.fromkeys(
        (post.uri for post in square.network.posts()), Told(long, (ToldStep(iso(datetime.now(UTC)), long, (long,)),))
    )
    context = await browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = await open_page(context, square.url, watched)
    await expect(page.locator(".post")).to_have_count(2)
    await page.locator("#people summary").first.click()
    await page.get_by_role("button", name="Why did Maren write this?").click()
    await expect(page.locator(".story h4")).to_be_visible()
    await page.get_by_role("button", name="Reply to Maren").click()
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    small = await page.evaluate("""() => [...document.querySelectorAll('button, summary')]
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24).length""")
    assert small == 0
    assert await page.evaluate(CONTRAST) == []
    await context.close()
    assert watched.complaints == []


async def test_a_lost_town_is_said_and_found_again_without_reloading(
    browser: Browser, square: Square, watched: Watched
) -> None:
    async with serve(square.app) as url:
        page = await open_page(await browser.new_context(), url, watched)
    await expect(page.locator("#lost")).to_be_visible()
    await page.get_by_label("Say something as you").fill("Anyone?")
    await page.get_by_role("button", name="Post", exact=True).click()
    await expect(page.locator("#write .problem")).to_contain_text("cannot be reached")
    square.say("maren", "Back again")
    async with serve(square.app, port=urlparse(url).port or 0):
        await expect(page.locator(".post .text")).to_have_text("Back again", timeout=15_000)
        await expect(page.locator("#lost")).to_be_hidden()
        await expect(page.get_by_label("Say something as you")).to_have_value("Anyone?")
        await page.close()


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
        await expect(page.locator("#tab-room .new-count")).to_be_hidden()
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
