"""Meeting one post: read its thread, decide by rule whether to go on, then let the mind choose one act.

A crash at any point leaves the post waiting; an act that had already been accepted is found and not repeated.
"""

from __future__ import annotations

import random
from dataclasses import replace

from adapters.atproto.client import Atproto
from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification, Post, StrongRef
from common.clock import Clock, local, spoken
from common.constants import THREAD_DEPTH
from common.errors import Transient
from common.pace import Pace
from common.provenance import Provenance
from common.result import ApiResult, Err, Ok
from common.text.untrusted import clean, one_line
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.conversations_policy import ConversationDecision
from modules.lives.bluesky.facts import post_facts
from modules.lives.bluesky.pictures import Pictures
from modules.lives.bluesky.policy import should_respond_to
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.scaffold import Scaffold, scaffold_of
from modules.lives.bluesky.thread import ThreadAnalysis, analyze_thread_view
from modules.lives.bluesky.types import Disposition, Pending, ThreadTurn
from modules.runtime.llm.types import Image, Importance, Message, Text
from modules.runtime.scheduler.policy import get_agent_jitter
from modules.services.agent.framing import Framer
from modules.services.agent.identity.identity import Identity, Me
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.sessions.sessions import Sessions
from modules.services.agent.skills.skills import Skills, interpolate
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.loop import Thought
from modules.services.agent.turn.runner import Thinker
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.senders.bluesky import record_uri
from modules.services.outbox.types import ACTIVE_STATES
from modules.services.peers.accounts import Relationships

_RESPONSE_TOOLS = ("bluesky_reply", "bluesky_like", "graceful_exit", "stay_silent")
_SKILL = "bluesky-response"
_OWN_SECTIONS = ("System Prompt", "User Message Template", "Relationship", "Notes")
_DEEP_THREAD = 10
_MANY_REPLIES = 3
_ACTS = {"reply": "replied", "like": "liked"}


class Responder:
    """Meets one waiting post at a time."""

    def __init__(
        self,
        *,
        me: Me,
        atproto: Atproto,
        outbox: Outbox,
        publisher: Publisher,
        conversations: Conversations,
        relationships: Relationships,
        identity: Identity,
        prompter: Prompter,
        skills: Skills,
        thinker: Thinker,
        clock: Clock,
        rng: random.Random,
        pace: Pace,
        etiquette: Etiquette,
        sessions: Sessions,
        pictures: Pictures,
    ) -> None:
        self._me = me
        self._atproto = atproto
        self._outbox = outbox
        self._publisher = publisher
        self._conversations = conversations
        self._relationships = relationships
        self._identity = identity
        self._prompter = prompter
        self._skills = skills
        self._thinker = thinker
        self._clock = clock
        self._rng = rng
        self._pace = pace
        self._etiquette = etiquette
        self._sessions = sessions
        self._pictures = pictures

    @property
    def own_did(self) -> str:
        return self._atproto.did

    def importance_of(self, notification: Notification) -> Importance:
        """How much its author matters, among those for whom the day's budget is kept."""
        if notification.author.did == self._me.owner_did:
            return "owner"
        return "stranger" if self._etiquette.is_stranger(notification.author.did) else "mention"

    async def respond(self, item: Pending) -> Disposition:
        """Meet it. Raises `Transient` when the world is briefly unable; the post then simply waits."""
        met = await self._meet(item)
        intent = await self._outbox.get(met.intent_id) if met.intent_id else None
        return replace(met, held=intent is not None and intent.state == "held")

    async def _meet(self, item: Pending) -> Disposition:
        notification = item.notification
        for intent in await self._outbox.by_cause(notification.uri):
            if intent.state in ACTIVE_STATES:
                if intent.kind == "reply":
                    self._conversations.record_our_reply(notification.root.uri, record_uri(self.own_did, intent))
                return Disposition(_ACTS.get(intent.kind, "left"), "done before the last restart", intent.id)
        await self._wait_for_turn(notification)
        read = await self._read_thread(notification)
        if isinstance(read, Err):
            if read.kind in {"not_found", "invalid"}:
                return Disposition("dropped", f"the post cannot be read any more: {read.error}")
            raise Transient(f"@{notification.author.handle}'s thread: {read.error}", retry_after=read.retry_after)
        if (ended := await self._end_by_rule(notification, read.data)) is not None:
            return ended
        return await self._think(item, read.data)

    async def _wait_for_turn(self, notification: Notification) -> None:
        """When others were addressed too, each takes its own moment, so that the later ones can read the earlier."""
        if len(detect_mentions(notification.text)) > 1:
            delay = get_agent_jitter(
                self._me.agent_name,
                minimum_ms=self._pace.peer_jitter_min_ms,
                span_ms=self._pace.peer_jitter_span_ms,
            )
            await self._clock.sleep(delay / 1000)

    async def _read_thread(self, notification: Notification) -> ApiResult[ThreadAnalysis]:
        focal = await self._atproto.get_post_thread(notification.uri, THREAD_DEPTH)
        if isinstance(focal, Err):
            return focal
        root_node = None
        if notification.root.uri != notification.uri:
            root = await self._atproto.get_post_thread(notification.root.uri, THREAD_DEPTH, 0)
            root_node = None if isinstance(root, Err) else root.data
        return Ok(analyze_thread_view(focal.data, self._atproto.did, root_node))

    async def _end_by_rule(self, notification: Notification, thread: ThreadAnalysis) -> Disposition | None:
        """How rules or manners meet it, be it by letting it wait its turn; None to let the mind decide."""
        is_owner = notification.author.did == self._me.owner_did
        root, top = notification.root, thread.focal_path[0]
        self._conversations.track_conversation(
            root.uri, cid=root.cid, author_did=top.author.did, author_handle=top.author.handle
        )
        for post in thread.posts:
            if post.author.did == self.own_did and post.reply:
                self._conversations.record_our_reply(root.uri, post.uri)
        decision = self._conversations.should_respond_in_conversation(
            root.uri,
            agent_did=self._atproto.did,
            incoming=notification,
            mechanics=self._identity.extract().social_mechanics,
            thread=thread,
            is_owner=is_owner,
            is_automated=self._etiquette.is_automated(notification.author),
        )
        circling = thread.circular.suggestion_to_exit and not is_owner
        outlook = await self._etiquette.before_reply(notification, thread.posts)
        if outlook.act == "silence":
            return Disposition("skipped", outlook.reason)
        if outlook.act == "later" and decision and not circling:
            return Disposition("later", outlook.reason, retry_in_s=outlook.retry_in_s)
        if outlook.act == "like" and decision:
            decision = ConversationDecision(
                should=False, reason=outlook.reason, code="manners", like=True, conclude=True
            )
        if decision and not circling:
            return None
        reason = decision.reason if not decision else f"the talk goes in circles ({thread.circular.pattern})"
        like = notification.ref if circling or decision.like else None
        if circling or decision.conclude:
            left = await self._publisher.conclude(root, reason, like=like, cause_id=notification.uri)
            return Disposition("concluded", reason, left.intent_id or None)
        if like:
            liked = await self._publisher.like(like, cause_id=notification.uri)
            return Disposition("liked", reason, liked.intent_id or None)
        return Disposition("skipped", reason)

    async def _think(self, item: Pending, thread: ThreadAnalysis) -> Disposition:
        notification = item.notification
        is_owner = notification.author.did == self._me.owner_did
        key, framer = f"bluesky:thread:{notification.root.uri}", Framer(self._skills, self._rng)
        pictures = await self._pictures.gather(thread.focal_path[-1], key)
        turn = Turn(
            loop="awareness",
            provenance=self._provenance(thread, is_owner=is_owner),
            cause_id=notification.uri,
            subject=ThreadTurn(
                notification=notification,
                root=notification.root,
                is_owner=is_owner,
                seen={post.uri: StrongRef(post.uri, post.cid) for post in thread.posts}
                | {notification.uri: notification.ref},
                said=tuple(post.text for post in thread.posts),
                scaffold=self._scaffold(item, thread, is_owner=is_owner),
            ),
            importance=self.importance_of(notification),
        )
        said = f"{_signature(notification)}: {clean(notification.text)}"
        session_id = await self._sessions.add_once(key, _with(pictures, said), turn.provenance)
        thought = await self._thinker.think(
            turn=turn,
            system=await self._prompter.prompt(
                skill=_SKILL,
                variables={"bluesky_username": self._me.bluesky_username, "owner_handle": self._me.owner_handle},
                audience="bluesky",
                session_key=key,
                query=notification.text,
                now=self._clock.now(),
                least=turn.provenance,
            ),
            messages=(_with(pictures, self._user_message(item, thread, framer, is_owner=is_owner)),),
            purpose=_SKILL,
            session_id=session_id,
            tool_choice="required",
            only=_RESPONSE_TOOLS,
            about=post_facts(notification, thread, turn, own_did=self.own_did, is_owner=is_owner),
        )
        met = handled(thought)
        return met if met.reason else replace(met, reason=should_respond_to(notification, self._me.owner_did).reason)

    def _scaffold(self, item: Pending, thread: ThreadAnalysis, *, is_owner: bool) -> Scaffold:
        """The words that stand in what the model is told beside the posts, but not in the posts themselves."""
        texts = [self._skills.section(_SKILL, name) for name in _OWN_SECTIONS]
        texts += [self._skills.section("core", "Ground Rules")]
        about = item.notification
        ours = {"relationship": self._relationship(about, is_owner=is_owner), "notes": self._notes(about, thread)}
        named = {"reason": about.kind, "author": about.author.handle, "uri": about.uri, "cid": about.cid}
        theirs = dict.fromkeys(("today", "conversation", "post"), "")
        told = [*ours.values(), self._skills.render(_SKILL, "User Message Template", **ours, **named, **theirs)]
        return scaffold_of(texts, told, (post.text for post in thread.posts))

    def _provenance(self, thread: ThreadAnalysis, *, is_owner: bool) -> Provenance:
        """The owner's trust only where nobody else's words are in the thread."""
        trusted = {self._me.owner_did, self._atproto.did}
        alone = all(post.author.did in trusted for post in thread.posts)
        return Provenance.OWNER if is_owner and alone else Provenance.STRANGER

    def _user_message(self, item: Pending, thread: ThreadAnalysis, framer: Framer, *, is_owner: bool) -> str:
        notification = item.notification
        earlier = "\n".join(_line(post, self._atproto.did) for post in thread.posts if post.uri != notification.uri)
        return self._skills.render(
            _SKILL,
            "User Message Template",
            today=spoken(local(self._clock.now(), self._me.timezone)),
            reason=notification.kind,
            author=notification.author.handle,
            relationship=self._relationship(notification, is_owner=is_owner),
            uri=notification.uri,
            cid=notification.cid,
            conversation=framer.frame("conversation", author="several", uri=notification.root.uri, text=earlier)
            if earlier
            else "(nothing yet)",
            post=framer.frame("post", author=_signature(notification), uri=notification.uri, text=notification.text),
            notes=self._notes(notification, thread),
        )

    def _relationship(self, notification: Notification, *, is_owner: bool) -> str:
        known = self._relationships.get(notification.author.handle)
        if is_owner:
            return self._skills.subsection(_SKILL, "Relationship", "Owner")
        if known is None or len(known.interactions) <= 1:
            return self._skills.subsection(_SKILL, "Relationship", "New")
        known_as = self._skills.subsection(_SKILL, "Relationship", "Known")
        return interpolate(known_as, {"interactions": len(known.interactions), "sentiment": known.sentiment})

    def _notes(self, notification: Notification, thread: ThreadAnalysis) -> str:
        applying = {
            "Deep Thread": thread.depth >= _DEEP_THREAD,
            "Own Replies": thread.agent_reply_count >= _MANY_REPLIES,
            "Last Word": thread.is_agent_last_reply,
            "Circling": thread.circular.is_circular,
            "Several Addressed": len(detect_mentions(notification.text)) > 1,
        }
        values = {"depth": thread.depth, "own_replies": thread.agent_reply_count}
        texts = self._skills.subsections(_SKILL, "Notes")
        return "\n".join(interpolate(texts[name], values) for name, applies in applying.items() if applies)


def handled(thought: Thought) -> Disposition:
    """What the turn came to: the act of the tool that ended it, or `undecided` when none did."""
    for _, result in reversed(thought.calls):
        if result.ends_turn:
            data = result.data
            return Disposition(str(data["act"]), str(data.get("reason", "")), data.get("intent_id"))
    return Disposition("undecided", f"the model chose nothing that works ({thought.stopped})")


def _with(pictures: tuple[Text | Image, ...], text: str) -> Message:
    return Message("user", (Text(text), *pictures) if pictures else text)


def _line(post: Post, own_did: str) -> str:
    who = "YOU" if post.author.did == own_did else f"@{post.author.handle}"
    return f"{who}: {' '.join(post.text.split())}"


def _signature(notification: Notification) -> str:
    name = one_line(notification.author.display_name)
    return f"@{notification.author.handle} ({name})" if name else f"@{notification.author.handle}"
