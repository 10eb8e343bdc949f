"""The pictures of a post, as a model sees them: fetched within bounds, drawn anew, kept, and each with its words.

What was kept outlives a crash and goes with its session; a post that is handled again keeps its pictures anew. What
cannot be had is told in words, and the journal says why.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from adapters.atproto.convert import MOST_PICTURES
from adapters.atproto.public import PublicRepos
from adapters.atproto.types import Notification, Picture, Post
from adapters.web.client import WebClient
from common.result import ApiResult, Err, Ok, answering
from common.text.untrusted import clean
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Image, Text
from modules.services.agent.media import Media
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

_MAX_BYTES = 2 * 1024 * 1024
_DEADLINE_S = 20.0
_ALT_CHARS = 1000
_KINDS = ("image/*",)
_SKILL = "bluesky-pictures"


@dataclass(slots=True, kw_only=True)
class PostPictures:
    """Gathers what a post shows.

    Attributes:
        web: the way out.
        repos: says where a file lies of which only the record is known.
        media: draws pictures anew, and keeps them.
        skills: has the words.
        rng: draws the boundary of untrusted text.
        journal: records what could not be had.
        sees: whether there is anybody to see it; if not, nothing is fetched.
        home_url: the service, where it is on this machine: the only place from which a picture may come without TLS.
        deadline_s: seconds for one picture, from asking to being kept.

    """

    web: WebClient
    repos: PublicRepos
    media: Media
    skills: Skills
    rng: random.Random
    journal: Journal
    sees: Callable[[], bool]
    home_url: str = ""
    deadline_s: float = _DEADLINE_S

    async def gather(self, post: Post | Notification, session_key: str) -> tuple[Text | Image, ...]:
        """What to put after the words of the message that carries the post: its pictures in order, at most four."""
        framer = Framer(self.skills, self.rng)
        wanted = post.pictures[:MOST_PICTURES]
        described = [self._described(post, picture, framer) for picture in wanted]
        if not self.sees():
            return tuple(Text(self._words("Picture", words)) for words in described)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._get_in_time(post, picture, session_key)) for picture in wanted]
        return tuple(
            [await self._met(post, task.result(), words) for task, words in zip(tasks, described, strict=True)]
        )

    async def _met(self, post: Post | Notification, got: ApiResult[tuple[str, str]], described: str) -> Text | Image:
        if isinstance(got, Ok):
            key, mime = got.data
            return Image(key, mime, self._words("Picture", described))
        await self.journal.record(
            Entry(
                "error",
                "awareness",
                f"A picture of @{post.author.handle} could not be loaded",
                line=None,
                reason=got.error,
                trigger_uri=post.uri,
                author=post.author.handle,
            )
        )
        return Text(self._words("Not Loaded", described))

    def _words(self, section: str, described: str) -> str:
        return self.skills.render(_SKILL, section, description=described).strip()

    def _described(self, post: Post | Notification, picture: Picture, framer: Framer) -> str:
        """What its author says that it shows, framed; "" if they say nothing that can be read."""
        said = clean(picture.alt)[:_ALT_CHARS]
        return framer.frame("reading", author=f"@{post.author.handle}", uri=post.uri, text=said) if said else ""

    async def _get_in_time(
        self, post: Post | Notification, picture: Picture, session_key: str
    ) -> ApiResult[tuple[str, str]]:
        try:
            async with asyncio.timeout(self.deadline_s):
                return await self._get(post, picture, session_key)
        except TimeoutError:
            return Err(f"it took longer than {self.deadline_s:g} s", kind="transient")

    @answering
    async def _get(self, post: Post | Notification, picture: Picture, session_key: str) -> ApiResult[tuple[str, str]]:
        """The key and the media type of the picture that is kept now."""
        place = picture.url or (await self.repos.file_url(post.author.did, picture.cid)).or_raise()
        at_home = bool(self.home_url) and place.startswith(f"{self.home_url}/")
        if not at_home and not place.startswith("https://"):
            return Err("its place is not https", kind="invalid")
        fetched = (
            await self.web.fetch(place, kinds=_KINDS, max_bytes=_MAX_BYTES, deadline_s=self.deadline_s, named=at_home)
        ).or_raise()
        drawn = (await self.media.picture(fetched.body)).or_raise()
        kept = await self.media.keep(drawn.data, mime=drawn.mime, session_key=session_key)
        return Ok((kept.or_raise(), drawn.mime))
