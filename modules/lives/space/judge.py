"""Asks a judge whether a message makes a point again that was made, in whatever words.

Two looks, since a second opinion keeps those from silence who object, or go on: one at the whole room, and, only where
that finds a repetition, one at each message alone until one is confirmed, a few side by side. One deadline holds for
both. In doubt the message may be said: a judge who fails blocks nobody. Verdicts are remembered while the process lives
and the conversation lasts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from common.clock import Clock
from common.constants import ECHO_JUDGE_TIMEOUT_S
from common.errors import Fatal, SoulError, Transient
from common.tasks import first_failure
from modules.lives.space.remembered import Remembered
from modules.lives.space.telling import LOOP
from modules.lives.space.verdicts import Verdicts
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

MOST_VERDICTS = 500
MOST_PEERS = 10
MOST_AT_ONCE = 5


class EchoJudge:
    """Judges by the skill `space-judgement`.

    Args:
        verdicts: who is asked.
        journal: hears of a judge who failed.
        clock: measures the deadline.
        timeout_s: how long both looks together may take, in seconds.

    """

    def __init__(
        self, verdicts: Verdicts, journal: Journal, clock: Clock, *, timeout_s: float = 2 * ECHO_JUDGE_TIMEOUT_S
    ) -> None:
        self._verdicts = verdicts
        self._journal = journal
        self._clock = clock
        self._timeout_s = timeout_s
        self._known: Remembered[bool] = Remembered(MOST_VERDICTS)

    async def is_echo_by_llm_judge(self, candidate: str, peers: Sequence[str]) -> bool:
        """Whether `candidate` makes the point of one of `peers` again; False when in doubt.

        `peers` stand oldest first; the newest ten are looked at.
        """
        newest = peers[-MOST_PEERS:]
        if not newest:
            return False
        key = _key(candidate, newest)
        known = self._known.get(key)
        if known is not None:
            return known
        try:
            echo = await self._judged(candidate, newest)
        except Fatal:
            raise
        except SoulError as error:
            await self._journal.record(
                Entry("error", LOOP, "[space] Echo judge did not answer", line="warn", reason=str(error))
            )
            return False
        return self._known.put(key, echo)

    async def _judged(self, candidate: str, peers: Sequence[str]) -> bool:
        try:
            async with self._clock.timeout(self._timeout_s):
                return await self._is_suspect(candidate, peers) and await self._is_confirmed(candidate, peers)
        except TimeoutError as error:
            raise Transient(f"the judge took longer than {self._timeout_s:g} s over one message") from error

    async def _is_suspect(self, candidate: str, peers: Sequence[str]) -> bool:
        return _yes(await self._verdicts.ask("Judge", said=peers, candidate=candidate))

    async def _is_confirmed(self, candidate: str, peers: Sequence[str]) -> bool:
        """Whether one of `peers`, each alone, makes that point; the newest are asked about first."""
        waiting, confirmed = reversed(peers), list[str]()

        async def ask_on() -> None:
            while not confirmed and (peer := next(waiting, None)) is not None:
                if _yes(await self._verdicts.ask("Confirm", examples="Confirm Examples", first=peer, second=candidate)):
                    confirmed.append(peer)

        # NOTE(self): after a YES nothing more is asked, but what is under way may end: a call that is cut off stays
        # counted at its worst case, several times what it takes.
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(MOST_AT_ONCE):
                    group.create_task(ask_on())
        except ExceptionGroup as failures:
            failure = first_failure(failures)
            if not confirmed or isinstance(failure, Fatal):
                raise failure from None
        return bool(confirmed)

    def clear(self) -> None:
        """Forget the verdicts: another conversation begins."""
        self._known.clear()


def _yes(answer: str) -> bool:
    return answer.startswith("YES")


def _key(candidate: str, peers: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([candidate, sorted(peers)]).encode()).hexdigest()
