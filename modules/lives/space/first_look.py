"""Takes a first look at talk among peers with one small question, to save the whole prompt.

It does so only if silence leaves nobody without an answer: the host said nothing new, nothing is open except what a
peer works on, and nobody names us. In doubt, or if the question fails, the whole prompt decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import BudgetExceeded, Fatal, SoulError
from common.text.closings import is_low_value_closing
from modules.lives.space.host_request import is_done_chat
from modules.lives.space.request_parser import shown as name_shown
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import HistoryEntry
from modules.services.agent.verdicts import Verdicts

QUESTION = "First Look"
_SILENT = "LISTEN"
_SHOWN, _CHARS = 6, 320
_CLOSINGS = "only thanks, good-byes and announcements of finished work were said"
_NOTHING = "a first look found nothing to add"
_AT_WORK = "only the one who acts on the request has spoken"


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Asks `verdicts`, worded by the skill `space-judgement`."""

    verdicts: Verdicts

    async def reason_for_silence(self, snapshot: RoomSnapshot) -> str:
        """Return why nothing is to be said; "" if the whole prompt has to decide.

        Raises:
            BudgetExceeded: there is no budget for the question.
            Fatal: as the gateway.

        """
        if not is_idle_talk(snapshot):
            return ""
        if snapshot.is_open and all(entry.name == snapshot.owner for entry in snapshot.batch):
            return _AT_WORK
        if all(is_low_value_closing(entry.content) or is_done_chat(entry.content) for entry in snapshot.batch):
            return _CLOSINGS
        try:
            answer = await self.verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", said=shown(snapshot.history))
        except (BudgetExceeded, Fatal):
            raise
        except SoulError:
            # NOTE(self): the whole prompt goes to the same model, and an error that persists is reported there.
            return ""
        return _NOTHING if answer.startswith(_SILENT) else ""


def is_idle_talk(snapshot: RoomSnapshot) -> bool:
    """Return whether everything new is talk of peers that needs nothing from us."""
    if not snapshot.batch or snapshot.opens or snapshot.needs_repo or snapshot.follow_up != "none":
        return False
    if snapshot.is_open and (snapshot.is_owner or not snapshot.is_claimed):
        return False
    me = snapshot.me.casefold()
    return not any(entry.is_host or me in entry.content.casefold() for entry in snapshot.batch)


def shown(history: Sequence[HistoryEntry]) -> list[str]:
    """Return the newest messages, cut, each with its speaker."""
    return [f"{name_shown(entry.name, is_host=entry.is_host)}: {entry.content[:_CHARS]}" for entry in history[-_SHOWN:]]
