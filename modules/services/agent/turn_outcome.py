"""What a turn came to, as the work table knows it."""

from __future__ import annotations

from common.text.untrusted import one_line
from modules.services.agent.turn.runner import TurnResult
from modules.services.work.types import Disposition

_WISH_CHARS = 120


def chosen_in(result: TurnResult, code: str, reason: str = "") -> Disposition:
    """Return what a turn came to: the act of the tool that ended it, or `undecided` where none did.

    `reason` is told where the model gave none.
    """
    for _, answer in reversed(result.calls):
        if answer.ends_turn:
            data = answer.data
            why, held = str(data.get("reason", "")) or reason, bool(data.get("held", False))
            impression, intent_id = data.get("impression", ""), data.get("intent_id")
            wish = one_line(str(data.get("wish", "")), _WISH_CHARS)
            retry_in_s = float(data.get("retry_in_s", 0.0))
            is_chosen = not answer.is_error  # an act that was blocked ends a turn by the reason of a rule
            return Disposition(data["act"], code, why, retry_in_s, intent_id, held, impression, wish, is_chosen)
    why = f": {result.cut_off}" if result.cut_off else ""
    return Disposition("undecided", code, f"the model chose nothing that works{why}")
