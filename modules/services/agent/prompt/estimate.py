"""Estimates tokens without a tokenizer: characters divided by a ratio learned from the bills (token counts) of a model.

The ratio in use moves in steps, and only when the bills have drifted a step away from it, so that texts cut for lack
of room are cut at the same place from turn to turn. It is kept in a state file; a crash loses less than one step.
"""

import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.files import load_state, save_state
from common.text.strings import CHARS_PER_TOKEN
from common.wording import number
from modules.runtime.console import Console
from modules.runtime.llm.dialect import ToolSpec, convert_tools

MOST_CHARS_PER_TOKEN = 6.0
"""Upper bound: tokenizers need four or five characters of prose for a token, and fewer of most other texts."""

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
    """Return whether `tokens` is too few for `chars` characters."""
    return chars > tokens * MOST_CHARS_PER_TOKEN


@dataclass(slots=True)
class PromptWindow:
    """Detects that the service of a model silently cuts the prompts that it is sent.

    A server with a small window drops what does not fit, most often the instructions, and still answers. Its bills
    show this: far fewer tokens than any tokenizer makes of so many characters, and the same number, the largest of its
    latest bills, for prompts of different lengths. Only that number is taken as its window, `tokens`, which is None
    while there is no sign of a limit: some services count wrongly in other ways, and cut nothing. Not persisted.
    """

    tokens: int | None = None
    is_told: bool = False
    _bills: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_BILLS_KEPT))

    def note(self, chars: int, tokens: int) -> bool:
        """Record a bill; return whether it is the first reason to warn the owner."""
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
    """Estimates the tokens of `model`, and learns the ratios of all models.

    Args:
        path: the state file with the ratios.
        model: the model whose tokens `estimate` counts; 4 characters a token until its first bill.
        console: where the owner is warned, once, that a service seems to cut prompts.

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
        """Characters per token that estimates use."""
        return self._settled.get(self._model, START_RATIO)

    def estimate(self, text: str) -> int:
        """Return the tokens of `text`, rounded up; 0 for an empty text."""
        return math.ceil(len(text) / self.ratio - _ROUNDING)

    def within(self, context_tokens: int) -> int:
        """Return how many tokens a request may have: `context_tokens`, or fewer if a service has a smaller window."""
        return min([context_tokens, *filter(None, (window.tokens for window in self._windows.values()))])

    def room_beside(self, context_tokens: int, chars: int) -> int:
        """Return how many tokens of the context are left beside a request of so many characters."""
        return self.within(context_tokens) - math.ceil(chars / self.ratio)

    def prompt_within(self, prompt_tokens: int) -> int:
        """Return `prompt_tokens`, or fewer, so that half of a window that is known to be small stays for the rest."""
        known = self.within(2 * prompt_tokens)
        return min(prompt_tokens, known // 2)

    def learn(self, model: str, chars: int, tokens: int) -> None:
        """Learn from a call to `model` that sent `chars` and was billed `tokens`. Raises `StorageError`.

        Small calls are ignored, because what services add around a message weighs too much in them, and so are counts
        that are too low for all that was sent.
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
    """Return the tokens of tool definitions in the form that is sent."""
    wire = convert_tools(specs)
    return estimate(json.dumps(wire, ensure_ascii=False)) if wire else 0


def _ratios(found: Any) -> dict[str, float]:  # noqa: ANN401 - whatever the file holds
    """Return the valid ratios in the file, by model."""
    if not isinstance(found, dict):
        return {}
    return {
        model: _clamped(float(ratio))
        for model, ratio in list(found.items())[-_MODELS_KEPT:]
        if isinstance(ratio, int | float) and math.isfinite(ratio)
    }


def _clamped(ratio: float) -> float:
    return min(MOST_RATIO, max(LEAST_RATIO, ratio))
