"""What each call of the model took: one JSON line a call in `.memory/llm-usage.jsonl`.

A line torn by a crash is one call not counted; the file is kept across versions.
"""

from __future__ import annotations

from pathlib import Path

from common.clock import Clock, iso
from common.constants import LOG_MAX_BYTES
from common.files import storage_error
from common.json_lines import json_line
from modules.runtime.llm.types import ChatResult


class UsageLog:
    """Appends lines; when the file has grown too large it becomes `<name>.1`, and a new one begins."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def note(self, result: ChatResult, purpose: str) -> None:
        """One answered call. Raises `StorageError`."""
        line = {
            "ts": iso(self._clock.now()),
            "purpose": purpose,
            "model": result.model,
            "input": result.usage.input_tokens,
            "cached": result.usage.cached_tokens,
            "output": result.usage.output_tokens,
            "usd": result.cost_usd,
            "attempts": result.attempts,
            "ms": round(result.seconds * 1000),
        }
        try:
            if self._path.exists() and self._path.stat().st_size >= LOG_MAX_BYTES:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            with self._path.open("ab") as file:
                file.write(json_line(line))
        except OSError as error:
            raise storage_error(self._path, error) from error
