"""Asks a judge whether a message makes a point again that was made, in whatever words.

Two looks, since a second opinion keeps those from silence who object, or go on: one at the whole room, and, only where
that finds a repetition, one at each message alone until one is confirmed. In doubt the message may be said: a judge who
fails blocks nobody. Verdicts are remembered while the process lives and the conversation lasts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from common.errors import Fatal, SoulError
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.space.remembered import Remembered
from modules.space.telling import LOOP
from modules.space.verdicts import Verdicts

MOST_VERDICTS = 500
MOST_PEERS = 10


class EchoJudge:
    """Judges by the skill `space-judgement`.

    Args:
        verdicts: who is asked.
        journal: hears of a judge who failed.

    """

    def __init__(self, verdicts: Verdicts, journal: Journal) -> None:
        self._verdicts = verdicts
        self._journal = journal
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
            echo = await self._is_suspect(candidate, newest) and await self._is_confirmed(candidate, newest)
        except Fatal:
            raise
        except SoulError as error:
            await self._journal.record(
                Entry("error", LOOP, "[space] Echo judge did not answer", line="warn", reason=str(error))
            )
            return False
        return self._known.put(key, echo)

    async def _is_suspect(self, candidate: str, peers: Sequence[str]) -> bool:
        return _yes(await self._verdicts.ask("Judge", said=peers, candidate=candidate))

    async def _is_confirmed(self, candidate: str, peers: Sequence[str]) -> bool:
        """Whether one of `peers`, each alone, makes that point; the newest is asked about first."""
        for peer in reversed(peers):
            if _yes(await self._verdicts.ask("Confirm", examples="Confirm Examples", first=peer, second=candidate)):
                return True
        return False

    def clear(self) -> None:
        """Forget the verdicts: another conversation begins."""
        self._known.clear()


def _yes(answer: str) -> bool:
    return answer.startswith("YES")


def _key(candidate: str, peers: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([candidate, sorted(peers)]).encode()).hexdigest()
