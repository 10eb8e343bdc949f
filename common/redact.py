"""Takes secrets out of text: the real values this process holds, in every plain encoding, and known key shapes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

MASK = "[redacted]"
MIN_SECRET_LENGTH = 6

_KEY_SHAPES = re.compile(
    r"""
      \bsk-[A-Za-z0-9_-]{16,}                      # model service keys
    | \bgh[pousr]_[A-Za-z0-9]{20,}                 # GitHub tokens
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*   # JWTs
    | \b(?=[a-z-]*[0-9])[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}-[a-z0-9]{4}\b   # Bluesky app passwords
    | (?<=[Bb]earer\ )[A-Za-z0-9._~+/=-]{16,}
    """,
    re.VERBOSE,
)


class Redactor:
    """Knows the secrets of this process. Build one from the settings; it never shows them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= MIN_SECRET_LENGTH for form in _encodings(secret)}
        ordered = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None

    def __repr__(self) -> str:
        return "Redactor(…)"

    def finds(self, text: str) -> bool:
        """Whether a secret, or what looks like one, stands in `text`."""
        return bool((self._known and self._known.search(text)) or _KEY_SHAPES.search(text))

    def text(self, text: str) -> str:
        """`text` with each secret replaced by a mask."""
        if self._known:
            text = self._known.sub(MASK, text)
        return _KEY_SHAPES.sub(MASK, text)

    def value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON-like value
        """A JSON-like value with each string in it redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def _encodings(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        raw.hex(),
        quote(secret, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
