"""Prompts as a SOUL sends them, made from the real skills and the real residents."""

from __future__ import annotations

import random
from collections.abc import Sequence

from modules.services.agent.framing import Framer
from modules.services.agent.skills.contracts import SKILL_CONTRACTS
from modules.services.agent.skills.skills import Skills
from tests.project import ROOT
from town.mind.scripted import ScriptedMind
from town.mind.types import ChatRequest, Message, Offer, ToolUse
from town.residents import RESIDENTS

SKILLS = Skills.load(ROOT / "skills", SKILL_CONTRACTS)
BY_NAME = {resident.name: resident for resident in RESIDENTS}
OWNER = "you.test"
URI = "at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.post/3kabc"
MIND = ScriptedMind()
THIN_SELF = "# Nemo\n\nI'm Nemo, an AI agent.\n"


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


def system(who: str, skill: str, **variables: str) -> Message:
    resident = BY_NAME.get(who)
    texts = [resident.soul, resident.self_md] if resident else ["You are Nemo, an AI agent.", THIN_SELF]
    rules = [SKILLS.render("core", "Ground Rules"), SKILLS.render(skill, "System Prompt", **variables)]
    return Message("system", "\n\n---\n\n".join([*texts, *rules]))


def spoken(minute: int) -> str:
    return f"Monday 5 January 2026, {minute // 60:02}:{minute % 60:02}"


def answering(
    who: str,
    author: str,
    text: str,
    *,
    said: Sequence[str] = (),
    reason: str = "mention",
    minute: int = 720,
    notes: str = "",
    boundary: int = 0,
    offers: tuple[Offer, ...] = ANSWERS,
) -> ChatRequest:
    """A turn of the skill bluesky-response; `said` are lines such as `YOU: …` or `@kit.test: …`."""
    framer = Framer(SKILLS, random.Random(boundary))
    block = framer.frame("conversation", author="several", uri=URI, text="\n".join(said)) if said else "(nothing yet)"
    user = SKILLS.render(
        "bluesky-response",
        "User Message Template",
        today=spoken(minute),
        reason=reason,
        author=author,
        display_name=author,
        relationship="This is the first time they reach you.",
        uri=URI,
        cid="bafyreid",
        conversation=block,
        post=framer.frame("post", author=f"@{author}", uri=URI, text=text),
        notes=notes,
    )
    names = {"bluesky_username": f"{who}.test", "owner_handle": OWNER}
    return ChatRequest("m", (system(who, "bluesky-response", **names), Message("user", user)), offers, "any")


def expressing(
    who: str, *, source: str = "identity", prompt: str = "Say it.", recent: Sequence[str] = (), minute: int = 720
) -> ChatRequest:
    """A turn of the skill expression; `recent` are our latest posts, newest first."""
    user = SKILLS.render(
        "expression",
        "User Message Template",
        today=spoken(minute),
        source=source,
        prompt=prompt,
        recent_posts="\n".join(f"- {text}" for text in recent) or "(none yet)",
    )
    names = {"bluesky_username": f"{who}.test", "richness_note": ""}
    return ChatRequest("m", (system(who, "expression", **names), Message("user", user)), (POST,), "any")


def owner_says(
    who: str, line: str, *, offers: tuple[Offer, ...] = (POST,), after: Sequence[Message] = ()
) -> ChatRequest:
    """A line of the owner in the terminal."""
    variables = {
        "bluesky_username": f"{who}.test",
        "owner_handle": OWNER,
        "today": spoken(720),
        "situation": "3 posts, 2 replies, 1 likes, 0 silences",
    }
    return ChatRequest("m", (system(who, "owner-communication", **variables), Message("user", line), *after), offers)


async def only_call(request: ChatRequest) -> ToolUse:
    """The one tool that the mind calls."""
    thought = await MIND.think(request)
    assert len(thought.calls) == 1
    return thought.calls[0]


async def reply_to(who: str, text: str, *, author: str = OWNER) -> str:
    """What the mind replies; it must reply."""
    call = await only_call(answering(who, author, text))
    assert call.name == "bluesky_reply", call
    return str(call.input["text"])
