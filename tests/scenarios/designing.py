"""A SOUL with a collection of the town's gallery in its design catalogue."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from common.clock import SystemClock
from modules.lives.bluesky.expression_policy import shows_picture
from modules.runtime.home import Home
from tests.running_town import RunningSoul, RunningTown
from town.gallery.service import GalleryFaults, gallery_app
from town.serving import serve

VOUCHED = "- {url}\n"
SELF = "# SELF\n\n## Values\n\n- Old roofs.\n\n## Design Catalog\n\n- {name} — {url}\n"
CHANNEL = "https://www.are.na/harbour-archive/tides-and-lights"


@dataclass
class Designing:
    """A SOUL whose SELF.md names one collection of the gallery."""

    town: RunningTown
    gallery: str
    faults: GalleryFaults
    home: Home

    def posts(self) -> list[dict[str, Any]]:
        records = self.town.network.records(self.town.account("rowan"), "app.bsky.feed.post")
        return sorted((one.value for one in records), key=lambda value: value["createdAt"])

    def shown(self) -> list[dict[str, Any]]:
        """Return the pictures of our posts with the text beside them; assert that each has its file on the network."""
        found = []
        for record in self.posts():
            for image in record.get("embed", {}).get("images", []):
                blob = self.town.network.blob(self.town.account("rowan"), image["image"]["ref"]["$link"])
                assert blob is not None
                assert blob.content.startswith((b"\xff\xd8\xff", b"\x89PNG", b"RIFF"))
                found.append({"alt": image["alt"], "text": record["text"], "reply": record.get("reply")})
        return found

    def logged(self) -> list[dict[str, Any]]:
        log = self.home.memory / "post_log.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    async def picture_thought(self, life: RunningSoul) -> str:
        """Express one thought whose planned source is a picture, and return this source."""
        expression, plan = life.app.lives.bluesky.expression, self.home.memory / "expression_schedule.json"
        for _ in range(50):
            await expression.schedule()
            source = str(json.loads(plan.read_text())["source"])
            if shows_picture(source):
                await expression.express()
                await life.send()
                return source
        raise AssertionError("no thought starts from a picture")


@asynccontextmanager
async def designing(town: RunningTown, url: str = CHANNEL, **more: str) -> AsyncIterator[Designing]:
    """Open the gallery and the home, with the collection in SELF.md, and named by the owner in SOUL.md."""
    faults = GalleryFaults()
    async with serve(gallery_app(SystemClock(), armed=faults)) as gallery:
        home = town.make_home("rowan", ARENA_API_URL=f"{gallery}/v2", SOUL_ALLOW_PRIVATE_NET="on", **more)
        home.self_md.write_text(SELF.format(name="Tides", url=url.format(gallery=gallery)))
        home.soul.write_text(f"{home.soul.read_text()}\n{VOUCHED.format(url=url.format(gallery=gallery))}")
        yield Designing(town, gallery, faults, home)
