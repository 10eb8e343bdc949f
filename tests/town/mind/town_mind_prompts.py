"""Requests as a SOUL sends them to the town's mind: facts about the real residents, and words that say nothing."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from common.facts import About, AgentFacts, ExpressionFacts, OwnerFacts, PostFacts, SaidLine, TurnFacts
from modules.services.identity.identity import extract_from_self, self_lines
from modules.services.skills.skills import Skills
from tests.project import ROOT
from town.mind.scripted import ScriptedMind
from town.mind.words import load_bank
from town.model.types import ChatRequest, ModelMessage, Offer, ToolUse
from town.residents import RESIDENTS

SKILLS = Skills.load(ROOT / "skills")
BY_NAME = {resident.name: resident for resident in RESIDENTS}
OWNER = "you.test"
URI = "at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.post/3kabc"
MIND = ScriptedMind()
PAGES = [field.slip.page for field in load_bank().fields.values() if field.slip]
WORDS = (ModelMessage("system", "Words."), ModelMessage("user", "Words."))


def offer(name: str, required: Sequence[str], *optional: str) -> Offer:
    properties = {key: {"type": "string"} for key in (*required, *optional)}
    return Offer(name, "", {"type": "object", "properties": properties, "required": list(required)})


POST = offer("bluesky_post", ["text"])
REPLY = offer("bluesky_reply", ["text"], "post_uri", "post_cid")
ANSWERS = (
    REPLY,
    offer("bluesky_like", [], "post_uri", "post_cid"),
    offer("graceful_exit", ["reason"], "closing_type", "closing_message"),
    offer("stay_silent", ["reason"]),
)


def agent(who: str) -> AgentFacts:
    """Return the facts about an agent; of one whose name is no resident's, nothing is known."""
    resident = BY_NAME.get(who)
    if resident is None:
        return AgentFacts(who, f"{who}.test")
    return AgentFacts(who, resident.handle, resident.soul, self_lines(extract_from_self(resident.self_md)))


def facts(who: str, about: About | None, *, minute: int = 720, second: int = 0) -> TurnFacts:
    moment = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=minute, seconds=second)
    return TurnFacts(about, agent(who), moment.isoformat())


def lines(said: Sequence[str]) -> tuple[SaidLine, ...]:
    """Return the lines of a talk, given as `YOU: …` or `@kit.test: …`."""
    parted = (line.partition(": ") for line in said)
    return tuple(SaidLine("" if who == "YOU" else who.removeprefix("@"), text) for who, _, text in parted)


def answering(
    who: str,
    author: str,
    text: str,
    *,
    said: Sequence[str] = (),
    kind: str = "mention",
    minute: int = 720,
    several: bool = False,
    second: int = 0,
    offers: tuple[Offer, ...] = ANSWERS,
) -> ChatRequest:
    """Return the request of a turn about a post; `said` are lines such as `YOU: …` or `@kit.test: …`."""
    post = PostFacts(
        uri=URI,
        cid="bafyreid",
        author=author,
        text=text,
        notification_kind=kind,
        thread=lines(said),
        is_owner=author == OWNER,
        several_addressed=several,
    )
    return ChatRequest("m", WORDS, offers, "any", facts=facts(who, post, minute=minute, second=second))


def expressing(
    who: str, *, source: str = "identity", of: Sequence[str] = (), recent: Sequence[str] = (), minute: int = 720
) -> ChatRequest:
    """Return the request for a post about the lines `of` SELF.md; `recent` are our latest posts, newest first.

    Its prompt holds the skills that residents write.
    """
    about = ExpressionFacts(source, tuple(of), tuple(recent))
    told = replace(facts(who, about, minute=minute), own_skills="\n".join(PAGES))
    return ChatRequest("m", WORDS, (POST,), "any", facts=told)


def owner_says(
    who: str, line: str, *, offers: tuple[Offer, ...] = (POST,), after: Sequence[ModelMessage] = ()
) -> ChatRequest:
    """Return the request for a line of the owner in the terminal."""
    about = OwnerFacts(line, "3 posts, 2 replies, 1 likes, 0 silences")
    return ChatRequest("m", (*WORDS, *after), offers, facts=facts(who, about))


async def only_call(request: ChatRequest) -> ToolUse:
    """Return the one tool call that the mind makes."""
    thought = await MIND.complete(request)
    assert len(thought.calls) == 1
    return thought.calls[0]


async def reply_to(who: str, text: str, *, author: str = OWNER) -> str:
    """Return what the mind replies to a post; it must reply."""
    call = await only_call(answering(who, author, text))
    assert call.name == "bluesky_reply", call
    return str(call.input["text"])
