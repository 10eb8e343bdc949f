"""Why a turn stopped: the values that are stored, and the words for each."""

from __future__ import annotations

from typing import Literal

Stopped = Literal[
    "ended",  # a tool settled the matter, or the model had no more calls
    "no_calls",  # a call was required, and the model made none even when nudged
    "refused",  # the model service refused to answer
    "rounds",  # the limit of rounds
    "time",  # the wall clock: no further round begins
    "repeated_error",  # the same call failed with the same error twice
    "repeated_call",  # the same calls had the same results, round after round
    "interrupted",  # the model service became unavailable after calls had been made
]

UNFINISHED: dict[str, str] = {
    "time": "the time was up",
    "interrupted": "the model became unavailable in the middle",
}
"""In words, why a turn stopped that may be continued later."""

CUT_OFF: dict[str, str] = {
    "no_calls": "the model called no tool, even when asked again",
    "refused": "the model service refused to answer",
    "rounds": "the limit of rounds was reached",
    "repeated_error": "the model made the same mistake twice",
    "repeated_call": "the model made the same calls again and again, with the same results",
    **UNFINISHED,
}
"""In words, why a turn stopped before its end."""
