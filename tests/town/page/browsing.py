"""A real browser on the page, and its complaints."""

from dataclasses import dataclass, field
from urllib.parse import urlparse

from playwright.async_api import BrowserContext, Page, expect

CHROMIUM = "/usr/bin/chromium"
ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
INJECTION = (
    "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script> [x](javascript:alert(1))"
)


@dataclass(slots=True)
class Watched:
    """The browser's complaints, and the hosts that it called."""

    complaints: list[str] = field(default_factory=list)
    hosts: set[str | None] = field(default_factory=set)


async def open_page(context: BrowserContext, url: str, watched: Watched) -> Page:
    """Open the page at `url`, watched, and wait until it shows the three residents."""
    page = await context.new_page()
    page.on("console", lambda message: watched.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on("request", lambda request: watched.hosts.add(urlparse(request.url).hostname))
    await page.goto(url)
    await expect(page.locator("#people > li")).to_have_count(3)
    return page
