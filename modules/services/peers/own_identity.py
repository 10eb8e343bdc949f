"""Keeps exactly one identity post of the SOUL on Bluesky, for its GitHub username.

`.memory/identity_post.json` keeps its address. The network decides: our own records are searched there, and nothing is
written while they cannot be read. An intent that is on its way counts as the post. The SOUL's own words in the post,
and about a peer, come from the model.
"""

import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from adapters.atproto.client import Atproto
from adapters.atproto.types import Post, Record
from common.clock import Clock
from common.facts import QuestionFacts
from common.files import Json, load_state, save_state
from common.result import ApiResult, Err, Ok, answering
from common.text.graphemes import fit_post_text
from common.text.untrusted import one_line
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.one_sentence import MOST_CHARS, SentenceAsker, SentenceQuestion, fitting_words
from modules.services.identity.identity import Me, SelfExtract
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import Intent, ProposedAction
from modules.services.peers.policy import VERIFY_AFTER, Peer, retry_after
from modules.services.peers.registry import (
    IDENTITY_POST_MARKER,
    PeerRegistry,
    build_identity_post_text,
    extract_github_username_from_text,
    github_url,
    is_github_username,
    is_identity_post,
)
from modules.services.skills.skills import Skills

SKILL = "peer-awareness"
_TOKENS = 300
_MOST_OF_A_KIND, _LINE_CHARS = 2, 200


@dataclass(frozen=True, slots=True)
class PeerVoice:
    """The SOUL's words about itself and its peers; `read_self` reads SELF.md."""

    sentences: SentenceAsker
    skills: Skills
    read_self: Callable[[], SelfExtract]

    async def introduce(self, username: str) -> str:
        """Return the text of the identity post; "" if the words of the model do not fit.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        bare, asked = (
            self.skills.render(SKILL, "Introduction", github_username=username, pages=pages)
            for pages in ("", _pages(self.read_self()))
        )
        said = await self._ask(asked, "say_who_you_are", "Introduction Tool", QuestionFacts("introduction"))
        words = fitting_words(_bare(said.replace(f"`{username}`", " ")), told=bare)
        text = build_identity_post_text(username, words) if words else ""
        return text if is_identity_text(text, username) else ""

    async def announce(self, peer: Peer) -> str:
        """Return the post that announces `peer`; "" if the words of the model do not fit.

        Raises:
            SoulError: as `LLMGateway.chat_with_tools`.

        """
        handle, url = peer.bluesky_handle or "", github_url(peer.github_username)
        asked = self.skills.render(SKILL, "Announcement", handle=handle)
        about = QuestionFacts("peer-announcement", {"handle": (handle,)})
        said = await self._ask(asked, "tell_of_peer", "Announcement Tool", about)
        words = fitting_words(_bare(said), handle, told=asked)
        if not words:
            return ""
        return fit_post_text(words if f"@{handle}" in words.lower() else f"@{handle} {words}", url)

    async def _ask(self, asked: str, tool: str, description: str, about: QuestionFacts) -> str:
        return await self.sentences.ask(SentenceQuestion(SKILL, asked, tool, description, about, _TOKENS))


def _pages(known: SelfExtract) -> str:
    """Return a few lines of SELF.md on the purpose of the SOUL and its current interests."""
    lists = (known.current_focus, known.explorations, known.questions, known.values)
    lines = [known.purpose, *(line for each in lists for line in each[:_MOST_OF_A_KIND])]
    return "\n".join(f"- {one_line(line, _LINE_CHARS)}" for line in lines if line)


def _bare(said: str) -> str:
    """Return the model's words on one line, without the characters that only the fixed parts have."""
    return one_line(said, MOST_CHARS).replace(IDENTITY_POST_MARKER, " ").replace("`", "")


def is_identity_text(text: str, username: str) -> bool:
    """Return whether a text has the form that others read: marker, the username in backticks, the link last."""
    return (
        text.startswith(f"{IDENTITY_POST_MARKER}`{username}`")
        and text.endswith(github_url(username))
        and extract_github_username_from_text(text) == username
    )


POSTS, FOLLOWS = "app.bsky.feed.post", "app.bsky.graph.follow"
_MAX_PAGES = 10


@answering
async def find_own_record(
    atproto: Atproto, collection: str, matches: Callable[[Record], bool]
) -> ApiResult[Record | None]:
    """Return the newest matching record of a kind among the latest 1,000; an `Err` if they could not all be read."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = (await atproto.list_records(collection, cursor=cursor)).or_raise()
        if found := next(filter(matches, page.items), None):
            return Ok(found)
        cursor = page.cursor
        if not cursor:
            break
    return Ok(None)


def text_of(record: Record) -> str:
    """Return the text of a post; "" if it has none."""
    text = record.value.get("text")
    return text if isinstance(text, str) else ""


LOOP = "peers"
CAUSE = "identity-post"
_URI, _NAME = "uri", "githubUsername"
_OPEN = frozenset({"held", "pending", "sending"})


@dataclass(slots=True, kw_only=True)
class OwnIdentity:
    """Keeps the identity post in place, and tells the registry whether it exists.

    `learn_login` takes over our present login on GitHub into `me`, and raises `Transient` while it is unknown.
    """

    me: Me
    learn_login: Callable[[], Awaitable[object]]
    path: Path
    atproto: Atproto
    outbox: Outbox
    voice: PeerVoice
    registry: PeerRegistry
    attention: Attention
    journal: Journal
    clock: Clock
    notice: str = field(init=False)
    _state: Json = field(init=False)
    _seen_at: float | None = field(default=None, init=False)
    _missed_at: float | None = field(default=None, init=False)
    """When it was last looked for and not found."""
    _failures: int = field(default=0, init=False)
    _retry_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        loaded = load_state(self.path, {})
        self.notice, self._state = loaded.notice, loaded.data

    async def note_feed(self, posts: Iterable[Post]) -> None:
        """Note from our own feed that the post exists, if the feed shows it, so that it need not be looked up."""
        ours = [post for post in posts if is_identity_post(post) and self._names_us(post.text)]
        if ours and self.me.github_username:
            oldest = min(ours, key=lambda post: (post.created_at, post.uri))
            self.registry.is_mutual, self._seen_at = True, self.clock.monotonic()
            await self._remember(oldest.uri)

    async def ensure(self, *, may_speak: bool) -> str:
        """Look up the post, and propose it if it does not exist and `may_speak`; return the state as a text.

        Raises:
            SoulError: the model or the budget does not allow it now.

        """
        await self.learn_login()
        if not is_github_username(self.me.github_username):
            return "no account on GitHub is set"
        now = self.clock.monotonic()
        if self._is_recent(self._seen_at):
            return "the identity post stands"
        intents = await self._intents()
        waits = self._waits(intents, may_speak=may_speak)
        if await self.outbox.is_taken_back(intents):
            waits = "the owner does not want an identity post"
        if waits and self._is_recent(self._missed_at):
            return waits
        found = await self._look(intents)
        if isinstance(found, Err):
            return f"whether the identity post stands could not be read: {found.error}"
        self.registry.is_mutual = found.data is not None
        if found.data:
            await self._remember(found.data)
            self._seen_at = now
            return "the identity post stands"
        self._missed_at = now
        return waits or await self._propose(sum(intent.state == "done" for intent in intents))

    def _is_recent(self, moment: float | None) -> bool:
        """Return whether a look at that moment still counts."""
        age_s = self.clock.monotonic() - moment if moment is not None else math.inf
        return age_s < self.clock.real(VERIFY_AFTER.total_seconds())

    def _waits(self, intents: list[Intent], *, may_speak: bool) -> str:
        """Return why no identity post is proposed now; "" if one may be."""
        if any(intent.rejected for intent in intents):
            return "the owner does not want an identity post"
        if any(intent.state in _OPEN for intent in intents):
            return "the identity post is on its way"
        if not may_speak or self.clock.monotonic() < self._retry_at:
            return "the identity post waits"
        return ""

    async def _propose(self, gone: int) -> str:
        """Propose the post; `gone` is how many identity posts of ours were sent and no longer exist."""
        self._failures += 1
        pause_s = retry_after(self._failures).total_seconds()
        self._retry_at = self.clock.monotonic() + self.clock.real(pause_s)
        async with self.attention.take(LOOP):
            text = await self.voice.introduce(self.me.github_username)
        if not text:
            summary = "No identity post: the model's words cannot be one"
            await self.journal.record(Entry("decision", LOOP, summary, line="warn", reason="will retry"))
            return "the identity post waits for its words"
        submitted = await self.outbox.submit(
            ProposedAction(PostBody(text=text), once=f"{self._key}:{gone}", cause_id=CAUSE)
        )
        if not submitted.accepted:
            return f"the identity post was refused: {submitted.reason}"
        self._failures, self._retry_at = 0, 0.0
        await self.journal.record(
            Entry(
                "decision",
                LOOP,
                f"Says who it is: github.com/{self.me.github_username}",
                line=None if submitted.held else "social",  # the outbox has reported the draft
                reason=submitted.reason or "so that other SOULs can find it",
                intent_id=submitted.intent.id,
                data={"act": "posted"},
            )
        )
        return "the identity post is on its way"

    @answering
    async def _look(self, intents: list[Intent]) -> ApiResult[str | None]:
        """Return the address of the post; `Ok(None)` only if the network says that it does not exist."""
        known = [str(self._state.get(_URI, "")), *(self._uri(one) for one in intents if one.state == "done")]
        for uri in dict.fromkeys(known):
            if not uri.startswith(f"at://{self.atproto.did}/"):
                continue
            got = (await self.atproto.get_record(uri)).or_raise()
            if got and self._is_ours(got):
                return Ok(uri)
        found = (await find_own_record(self.atproto, POSTS, self._is_ours)).or_raise()
        return Ok(found.uri if found else None)

    async def _remember(self, uri: str) -> None:
        if self._state.get(_URI) == uri and self._state.get(_NAME) == self.me.github_username:
            return
        self._state |= {_URI: uri, _NAME: self.me.github_username}
        save_state(self.path, self._state)
        summary = f"Its identity post stands: github.com/{self.me.github_username}"
        await self.journal.record(Entry("life", LOOP, summary, line="mem", trigger_uri=uri))

    async def _intents(self) -> list[Intent]:
        """Return the intents for this post, newest first."""
        prefix = f"once:{self._key}:"
        return [one for one in await self.outbox.by_cause(CAUSE) if one.dedup_key.startswith(prefix)]

    @property
    def _key(self) -> str:
        return f"{CAUSE}:{self.atproto.did}:{self.me.github_username.lower()}"

    def _uri(self, intent: Intent) -> str:
        return intent.result_uri or record_uri(self.atproto.did, intent)

    def _is_ours(self, record: Record) -> bool:
        text = text_of(record)
        return "reply" not in record.value and text.lstrip().startswith(IDENTITY_POST_MARKER) and self._names_us(text)

    def _names_us(self, text: str) -> bool:
        return (extract_github_username_from_text(text) or "").lower() == self.me.github_username.lower()
