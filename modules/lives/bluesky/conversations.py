"""The threads that the SOUL takes part in: `.memory/bluesky_conversations.json`.

Written atomically after each change and kept across versions: a life does not forget that it left a thread. A crash
loses at most the change it interrupted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from common.clock import Clock, iso
from common.session_keys import THREAD_PREFIX
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.conversation_policy import (
    ConversationAnalysis,
    FollowedThread,
    judge_incoming,
)
from modules.lives.bluesky.conversation_policy import analyze_conversation as analyze
from modules.lives.bluesky.policy import PostDecision, plan_case
from modules.lives.bluesky.types import (
    Aged,
    Concluded,
    Disengaged,
    Replied,
    ThreadEvent,
    ThreadSeen,
)
from modules.runtime.record_file import RecordFile
from modules.services.identity.self_mechanics import SocialMechanics


class Conversations:
    """The store. `notice` is a line for the owner if the file was not as expected."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._file = RecordFile(path, "conversations", FollowedThread)
        self.notice = self._file.notice

    def get_conversation(self, root_uri: str) -> FollowedThread | None:
        """The conversation under a thread root."""
        return self._file.records.get(root_uri)

    def is_over(self, session_key: str) -> bool:
        """Whether a session is that of a thread whose conversation has ended for us."""
        known = self._file.records.get(session_key.removeprefix(THREAD_PREFIX))
        return session_key.startswith(THREAD_PREFIX) and known is not None and known.state in {"concluded", "stale"}

    def counts(self) -> tuple[int, int]:
        """Return how many conversations go on, and how many are concluded; stale ones are neither."""
        states = Counter(one.state for one in self._file.records.values())
        concluded, stale = states["concluded"], states["stale"]
        return states.total() - concluded - stale, concluded

    def track_conversation(self, root_uri: str, cid: str | None = None) -> FollowedThread:
        """Follow a thread, or note that it came up again."""
        return self._apply(root_uri, ThreadSeen(cid))

    def record_our_reply(self, root_uri: str, *reply_uris: str) -> FollowedThread:
        """Replies of ours stand in the thread; the same uri twice counts once."""
        return self._apply(root_uri, ThreadSeen(), *map(Replied, reply_uris))

    def mark_conversation_concluded(self, root_uri: str, reason: str) -> FollowedThread:
        """The thread is over for us; it need not have been followed before."""
        return self._apply(root_uri, ThreadSeen(), Concluded(reason))

    def plan_case(self, post_case: PostCase, mechanics: SocialMechanics) -> PostDecision:
        """Plan what to do about a post whose thread was read, and keep the conversation as post and plan leave it."""
        now = self._clock.now()
        spoken = self._known(post_case.notification.root.uri).after_all(post_case.events, now)
        judged, reopened = judge_incoming(
            spoken,
            post_case.incoming,
            mechanics,
            agent_did=post_case.own_did,
            is_owner=post_case.is_owner,
            now=now,
        )
        plan = plan_case(post_case, judged)
        left = [Concluded(plan.reason)] if plan.code == "conclude" else []
        self._keep(spoken.after_all([*reopened, *left], now))
        return plan

    def analyze_conversation(
        self, root_uri: str, agent_did: str, mechanics: SocialMechanics | None = None
    ) -> ConversationAnalysis:
        """Whether a conversation has run its course."""
        conversation = self._file.records.get(root_uri)
        return analyze(conversation, mechanics or SocialMechanics(), agent_did, self._clock.now())

    def sweep(self, agent_did: str, mechanics: SocialMechanics | None = None) -> list[FollowedThread]:
        """Conclude what has run its course by itself; returns those, so that the terminal can tell."""
        with self._file.one_save():
            return self._sweep(agent_did, mechanics)

    def _sweep(self, agent_did: str, mechanics: SocialMechanics | None) -> list[FollowedThread]:
        over = []
        for root_uri, conversation in list(self._file.records.items()):
            if conversation.state in {"concluded", "stale"}:
                continue
            analysis = self.analyze_conversation(root_uri, agent_did, mechanics)
            events: list[ThreadEvent] = [Disengaged(analysis.disengaged_participants)]
            if analysis.should_conclude:
                events.append(Concluded(analysis.reason, by_silence=analysis.by_silence))
            after = self._apply(root_uri, *events)
            if after.state == "concluded":
                over.append(after)
        return over

    def cleanup_old_conversations(self) -> int:
        """Let old conversations go stale and forget the oldest; returns how many were forgotten."""
        now, before = self._clock.now(), self._file.records
        kept = {root_uri: one for root_uri, one in before.items() if not one.is_expired(now)}
        self._file.records = {root_uri: one.after(Aged(), now) for root_uri, one in kept.items()}
        self._file.rest["lastCleanup"] = iso(now)
        self._file.save()
        return len(before) - len(kept)

    def _apply(self, root_uri: str, *events: ThreadEvent) -> FollowedThread:
        """Keep the conversation as it stands after `events`."""
        return self._keep(self._known(root_uri).after_all(events, self._clock.now()))

    def _known(self, root_uri: str) -> FollowedThread:
        """The conversation under a thread root; a new one if there is none."""
        now = self._clock.now()
        return self._file.records.get(root_uri) or FollowedThread(
            root_uri=root_uri, first_seen=now, last_checked=now, source="notification"
        )

    def _keep(self, conversation: FollowedThread) -> FollowedThread:
        if self._file.records.get(conversation.root_uri) != conversation:
            self._file.records[conversation.root_uri] = conversation
            self._file.save()
        return conversation
