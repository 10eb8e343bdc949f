"""How many tokens a text will be, without a tokenizer: characters through a ratio that each model teaches by its bills.

The ratio in use moves in steps, and only when the bills have drifted a step away from it, so that what is cut for lack
of room stays cut at the same place from turn to turn. It is kept in a state file; a crash loses less than one step.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.state import load_state, save_state
from common.text.tokens import CHARS_PER_TOKEN
from common.wording import number
from modules.runtime.console import Console
from modules.runtime.llm.dialect import ToolSpec, convert_tools

MOST_CHARS_PER_TOKEN = 6.0
"""Tokenizers make a token of four or five characters of prose, and of less in most other texts."""

_WORTH_TELLING_CHARS = 8_000
_CLEARLY_LONGER = 1.25
_BILLS_KEPT = 50
START_RATIO = float(CHARS_PER_TOKEN)
LEAST_RATIO, MOST_RATIO = 2.5, MOST_CHARS_PER_TOKEN
_WEIGHT = 0.1
_STEP = 0.05
_LEAST_TOKENS = 100
_MODELS_KEPT = 20
_ROUNDING = 1e-9
_CUT_REMEDY = (
    "its service cuts what it is sent, instructions first, or counts wrongly. Where it cuts, give it a larger window"
    " (Ollama: num_ctx, llama.cpp: -c), or set CONTEXT_TOKENS={tokens} in .env; `soul doctor --measure` shows it"
)


def is_short(chars: int, tokens: int) -> bool:
    """Whether that is less than what was sent can be."""
    return chars > tokens * MOST_CHARS_PER_TOKEN


@dataclass(slots=True)
class PromptWindow:
    """Notices where the service of a model keeps less of a prompt than it was sent, without a word.

    A server with a small window drops what does not fit, most often the instructions, and answers all the same. Its
    bills show it: far fewer tokens than any tokenizer makes of so many characters, and the same number for prompts of
    different lengths, the largest of its latest bills. Only that number is taken for its window, `tokens`, which is
    None while nothing tells of a limit: some services count wrongly in other ways, and cut nothing. It is forgotten
    with the process.
    """

    tokens: int | None = None
    is_told: bool = False
    _bills: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_BILLS_KEPT))

    def note(self, chars: int, tokens: int) -> bool:
        """Take a bill; return whether it says what the owner has not been told."""
        if self.tokens is not None and tokens > self.tokens:
            self.tokens = None
            self._bills.clear()
        short = is_short(chars, tokens)
        growth = 1.0 if short else _CLEARLY_LONGER
        alike = [sent for sent, counted in self._bills if counted == tokens]
        is_largest = all(counted <= tokens for _, counted in self._bills)
        if is_largest and any(max(sent, chars) > min(sent, chars) * growth for sent in alike):
            self.tokens = tokens
        self._bills.append((chars, tokens))
        is_news = not self.is_told and (self.tokens is not None or short) and chars >= _WORTH_TELLING_CHARS
        self.is_told = self.is_told or is_news
        return is_news


class Estimator:
    """Estimates for `model`, and learns for any.

    Args:
        path: where the ratios are kept.
        model: whose tokens `estimate` counts; a model that has sent no bill yet is taken at 4 characters a token.
        console: where the owner is told, once, that a service seems to cut what it is sent.

    """

    def __init__(self, path: Path, *, model: str, console: Console | None = None) -> None:
        self._path = path
        self._model = model
        self._console = console
        self._windows: defaultdict[str, PromptWindow] = defaultdict(PromptWindow)
        loaded = load_state(path, {})
        self.notice = loaded.notice
        self._settled = _ratios(loaded.data.get("ratios"))
        self._average = dict(self._settled)

    @property
    def ratio(self) -> float:
        """Characters a token, as estimates take it."""
        return self._settled.get(self._model, START_RATIO)

    def estimate(self, text: str) -> int:
        """Tokens of `text`, rounded up; nothing is 0."""
        return math.ceil(len(text) / self.ratio - _ROUNDING)

    def within(self, context_tokens: int) -> int:
        """How many tokens a request may have: as many as that, or what its service was seen to keep."""
        return min([context_tokens, *filter(None, (window.tokens for window in self._windows.values()))])

    def prompt_within(self, prompt_tokens: int) -> int:
        """How many of these a prompt may have: half of a window that is known to be small stays for the rest."""
        known = self.within(2 * prompt_tokens)
        return min(prompt_tokens, known // 2)

    def learn(self, model: str, chars: int, tokens: int) -> None:
        """A call to `model` sent so many characters and was counted as so many tokens. Raises `StorageError`.

        Small calls are passed over: what services add around a message weighs too much in them. So is a count that
        cannot be one of all that was sent.
        """
        if tokens < _LEAST_TOKENS or chars <= 0:
            return
        window = self._windows[model]
        if window.note(chars, tokens) and self._console:
            told = (
                f"{model} counted {number(tokens)} tokens of a prompt of about {number(math.ceil(chars / self.ratio))}"
            )
            self._console.line("warn", told, _CUT_REMEDY.format(tokens=tokens))
        if is_short(chars, tokens) or tokens == window.tokens:
            return
        average = self._average.get(model, START_RATIO)
        average += _WEIGHT * (_clamped(chars / tokens) - average)
        self._average[model] = average
        if abs(average - self._settled.get(model, START_RATIO)) < _STEP - _ROUNDING:
            return
        self._settled.pop(model, None)
        self._settled[model] = round(average, 4)
        for oldest in list(self._settled)[:-_MODELS_KEPT]:
            del self._settled[oldest], self._average[oldest]
        save_state(self._path, {"ratios": self._settled})


def tool_tokens(specs: Iterable[ToolSpec], estimate: Callable[[str], int]) -> int:
    """Tokens of tool definitions, as they go over the wire."""
    wire = convert_tools(specs)
    return estimate(json.dumps(wire, ensure_ascii=False)) if wire else 0


def _ratios(found: Any) -> dict[str, float]:  # noqa: ANN401 - whatever the file holds
    """What of the file is a ratio."""
    if not isinstance(found, dict):
        return {}
    return {
        model: _clamped(float(ratio))
        for model, ratio in list(found.items())[-_MODELS_KEPT:]
        if isinstance(ratio, int | float) and math.isfinite(ratio)
    }


def _clamped(ratio: float) -> float:
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))
