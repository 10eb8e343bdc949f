"""Why the words of a reply must not stand in its thread: by rule, or because a judge finds that they repeat."""

from __future__ import annotations

from dataclasses import dataclass

from common.text.closings import asks
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.reply_check import (
    ReplyProblem,
    SuspectedEcho,
    repeats,
    reply_problem,
    suspected_echo,
    unsayable,
)
from modules.lives.bluesky.types import ThreadTurn
from modules.services.agent.echo_judge import ClaimJudge
from modules.services.agent.tools.types import Turn


@dataclass(frozen=True, slots=True)
class ReplyCheck:
    """Checks replies. `publisher` knows where we spoke; `judge` is asked once about each text."""

    publisher: Publisher
    judge: ClaimJudge

    async def problem(self, text: str, thread: ThreadTurn, turn: Turn, *, closing: bool = False) -> ReplyProblem | None:
        """Return why these words must not stand in the thread; None if they may. Raises `Fatal`.

        The owner is answered: of the second text only words of our prompt are refused, and that its writer is a person.
        To the owner thanks are enough, and at the end of a conversation; where we spoke before and nothing was asked,
        the publisher likes instead.
        """
        if thread.is_owner and thread.revisions.asked_for_better:
            return unsayable(text, thread.scaffold, thread.said)
        if repeats(text, thread.notification.text):
            return "repeats them"
        if any(repeats(text, told) for told in thread.revisions.told_done):
            return "repeats"
        spoken = self.publisher.has_spoken(thread.root) and not asks(thread.notification.text)
        may_thank = closing or thread.is_owner or spoken
        meanwhile = thread.revisions.peers_since
        said = (*thread.said, *meanwhile)
        # NOTE(self): what we made is news, however much its words are like those of others who made a part of it.
        peers_said = () if thread.revisions.made else (*thread.peers_said, *meanwhile)
        if found := reply_problem(text, said, thread.scaffold, may_thank=may_thank):
            return found
        suspected = suspected_echo(text, said, peers_said)
        return suspected.problem if suspected and await self._is_echo(text, suspected, thread, turn) else None

    async def _is_echo(self, text: str, suspected: SuspectedEcho, thread: ThreadTurn, turn: Turn) -> bool:
        """Return whether the judge confirms that `text` only says the suspected post again."""
        judged = thread.revisions.judged
        if (text, suspected) not in judged:
            judged[text, suspected] = await self.judge.is_same(
                text, suspected.post, importance=turn.importance, loop=turn.loop, cause_id=turn.cause_id
            )
        return judged[text, suspected]
