"""Whether a talk among peers leaves us anything to say: asked cheaply, before the whole prompt is sent for a decision.

Only where silence costs nobody an answer: the host said nothing new, nothing is open, and nobody means us. In doubt the
whole prompt decides, as it does where this look fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.space.room_addressing import parse_addressed
from common.errors import BudgetExceeded, Fatal, SoulError
from common.text.closings import is_low_value_closing
from modules.lives.space.names import shown as name_shown
from modules.lives.space.scene import Scene
from modules.lives.space.types import HistoryEntry
from modules.lives.space.verdicts import Verdicts

QUESTION = "First Look"
_SILENT = "LISTEN"
_SHOWN, _CHARS = 6, 320
_CLOSINGS = "only thanks and good-byes were said"
_NOTHING = "a first look found nothing to add"


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Asks `verdicts` in the words of the skill `space-judgement`."""

    verdicts: Verdicts

    async def reason_for_silence(self, scene: Scene) -> str:
        """Why nothing is to be said, "" if the whole prompt has to decide.

        Raises:
            BudgetExceeded: not today.
            Fatal: as the gateway.

        """
        if not is_idle_talk(scene):
            return ""
        if all(is_low_value_closing(entry.content) for entry in scene.batch):
            return _CLOSINGS
        try:
            answer = await self.verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", said=shown(scene.history))
        except (BudgetExceeded, Fatal):
            raise
        except SoulError:
            # NOTE(self): the whole prompt goes to the same model; what is wrong there is told from there.
            return ""
        return _NOTHING if answer.startswith(_SILENT) else ""


def is_idle_talk(scene: Scene) -> bool:
    """Whether all that is new are peers' words that call for nothing from us."""
    if not scene.batch or scene.opens or scene.needs_repo or scene.is_open or scene.follow_up != "none":
        return False
    return not any(entry.is_host or _means(entry.content, scene.me) for entry in scene.batch)


def _means(content: str, me: str) -> bool:
    return bool(parse_addressed(content, (me,))) or me.casefold() in content.casefold()


def shown(history: Sequence[HistoryEntry]) -> list[str]:
    """The newest messages, cut, each with its speaker."""
    return [f"{name_shown(entry.name, is_host=entry.is_host)}: {entry.content[:_CHARS]}" for entry in history[-_SHOWN:]]
