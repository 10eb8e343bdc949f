"""Lets the model choose one act about one post: the prompt, the pictures, the model and its tools."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from adapters.atproto.types import Post
from common.clock import Clock, local, spoken
from common.facts import PostFacts, SaidLine
from common.text.untrusted import clean, one_line
from modules.lives.bluesky.case import Case
from modules.lives.bluesky.pictures import Pictures
from modules.lives.bluesky.reply_check import Scaffold, scaffold_of
from modules.lives.bluesky.types import Disposition
from modules.runtime.llm.types import Image, Message, Text
from modules.services.agent.framing import Framer
from modules.services.agent.identity.identity import Me
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.sessions.sessions import Sessions
from modules.services.agent.skills.skills import Skills, interpolate
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.loop import TurnResult
from modules.services.agent.turn.runner import TurnRunner

_RESPONSE_TOOLS = ("bluesky_reply", "bluesky_like", "graceful_exit", "stay_silent")
_SKILL = "bluesky-response"
_TEMPLATE = "User Message Template"
_OWN_SECTIONS = ("System Prompt", _TEMPLATE, "Relationship", "Notes", "No Conversation")
_DEEP_THREAD = 10
_MANY_REPLIES = 3


class Responder:
    """Lets the model choose what to do about a case."""

    def __init__(
        self,
        *,
        me: Me,
        prompter: Prompter,
        skills: Skills,
        turn_runner: TurnRunner,
        clock: Clock,
        rng: random.Random,
        sessions: Sessions,
        pictures: Pictures,
    ) -> None:
        self._me = me
        self._prompter = prompter
        self._skills = skills
        self._turn_runner = turn_runner
        self._clock = clock
        self._rng = rng
        self._sessions = sessions
        self._pictures = pictures

    async def respond_to(self, post_case: Case) -> Disposition:
        """Return what the model chose; its reason is "" where the model gave none.

        Raises:
            BudgetExceeded: there is no budget for the author of the post.
            Transient: the model is briefly unable.

        """
        notification = post_case.notification
        key = f"bluesky:thread:{notification.root.uri}"
        pictures = await self._pictures.gather(post_case.thread.focal_path[-1], key)
        facts = _facts(post_case, pictures=sum(isinstance(part, Image) for part in pictures))
        words = self._words(post_case)
        turn = Turn(
            loop="awareness",
            provenance=post_case.provenance,
            cause_id=notification.uri,
            subject=replace(post_case.subject, scaffold=words.scaffold),
            importance=post_case.importance,
        )
        said, told = (_message(text, pictures) for text in (words.said, words.told))
        session_id = await self._sessions.add_once(key, said, turn.provenance)
        system = await self._prompter.prompt(
            skill=_SKILL,
            variables={"bluesky_username": self._me.bluesky_username, "owner_handle": self._me.owner_handle},
            audience="bluesky",
            session_key=key,
            query=notification.text,
            now=self._clock.now(),
            least=turn.provenance,
        )
        turn_result = await self._turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=(told,),
            purpose=_SKILL,
            session_id=session_id,
            tool_choice="required",
            only=_RESPONSE_TOOLS,
            about=facts,
        )
        return disposition_of(turn_result)

    def _words(self, post_case: Case) -> _Words:
        """Put a case into words, all helpers first, then the skill."""
        post = post_case.notification
        relationship, notes, values = _relationship(post_case), _notes(post_case), _values(post_case)
        earlier, author = _earlier(post_case), _signature(post_case)
        framer = Framer(self._skills, self._rng)
        framed = {
            kind: framer.frame(kind, author=who, uri=uri, text=text)
            for kind, who, uri, text in (
                ("conversation", "several", post.root.uri, earlier),
                ("post", author, post.uri, post.text),
            )
            if kind == "post" or text
        }
        known, noted = (self._skills.subsections(_SKILL, name) for name in ("Relationship", "Notes"))
        about = {
            "relationship": interpolate(known[relationship], values),
            "notes": "\n".join(interpolate(noted[name], values) for name in notes),
            "reason": post.kind,
            "author": post.author.handle,
            "uri": post.uri,
            "cid": post.cid,
        }
        theirs = {"conversation": self._skills.section(_SKILL, "No Conversation"), **framed}
        today = spoken(local(self._clock.now(), self._me.timezone))
        message = self._skills.render(_SKILL, _TEMPLATE, **about, **theirs, today=today)
        bare = self._skills.render(_SKILL, _TEMPLATE, **about, **dict.fromkeys((*theirs, "today"), ""))
        templates = [self._skills.section(_SKILL, name) for name in _OWN_SECTIONS]
        templates += [self._skills.section("core", "Ground Rules")]
        told = [about["relationship"], about["notes"], bare]
        scaffold = scaffold_of(templates, told, (one.text for one in post_case.thread.posts))
        return _Words(f"{author}: {clean(post.text)}", message, scaffold)


@dataclass(frozen=True, slots=True)
class _Words:
    """A case in words: `said` for the session, `told` for the model, and the words that only our prompt has."""

    said: str
    told: str
    scaffold: Scaffold


def disposition_of(turn_result: TurnResult) -> Disposition:
    """What the turn came to: the act of the tool that ended it, or `undecided` when none did."""
    for _, result in reversed(turn_result.calls):
        if result.ends_turn:
            data = result.data
            reason, held = str(data.get("reason", "")), bool(data.get("held", False))
            return Disposition(data["act"], reason, data.get("intent_id"), held=held)
    return Disposition("undecided", f"the model chose nothing that works ({turn_result.stopped})")


def _facts(post_case: Case, *, pictures: int) -> PostFacts:
    """The post and its thread, as data beside the prompt."""
    post = post_case.notification
    earlier = (one for one in post_case.thread.posts if one.uri != post.uri)
    return PostFacts(
        uri=post.uri,
        cid=post.cid,
        author=post.author.handle,
        text=post.text,
        notification_kind=post.kind,
        thread=tuple(
            SaidLine("" if one.author.did == post_case.own_did else one.author.handle, one.text) for one in earlier
        ),
        is_owner=post_case.is_owner,
        several_addressed=post_case.addresses_others,
        trust=post_case.provenance.name.lower(),
        pictures=pictures,
    )


def _relationship(post_case: Case) -> str:
    """The subsection that says how well the author is known."""
    if post_case.is_owner:
        return "Owner"
    return "New" if post_case.relationship is None or len(post_case.relationship.interactions) <= 1 else "Known"


def _notes(post_case: Case) -> list[str]:
    """The subsections of the notes that apply."""
    thread = post_case.thread
    applying = {
        "Deep Thread": thread.depth >= _DEEP_THREAD,
        "Own Replies": thread.agent_reply_count >= _MANY_REPLIES,
        "Last Word": thread.is_agent_last_reply,
        "Circling": thread.circular.is_circular,
        "Several Addressed": post_case.addresses_others,
    }
    return [name for name, applies in applying.items() if applies]


def _values(post_case: Case) -> dict[str, object]:
    known = post_case.relationship
    return {
        "depth": post_case.thread.depth,
        "own_replies": post_case.thread.agent_reply_count,
        "interactions": len(known.interactions) if known else 0,
        "sentiment": known.sentiment if known else "unknown",
    }


def _earlier(post_case: Case) -> str:
    """The other posts of the thread, a line each, oldest first."""
    uri = post_case.notification.uri
    return "\n".join(_line(post, post_case.own_did) for post in post_case.thread.posts if post.uri != uri)


def _line(post: Post, own_did: str) -> str:
    who = "YOU" if post.author.did == own_did else f"@{post.author.handle}"
    return f"{who}: {' '.join(post.text.split())}"


def _message(text: str, pictures: tuple[Text | Image, ...]) -> Message:
    return Message("user", (Text(text), *pictures) if pictures else text)


def _signature(post_case: Case) -> str:
    author = post_case.notification.author
    name = one_line(author.display_name)
    return f"@{author.handle} ({name})" if name else f"@{author.handle}"
