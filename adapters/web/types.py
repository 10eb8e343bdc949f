"""What a fetch brings home."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.web.charset import decoded


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page, a picture, a file: `url` is where it was found in the end, `kind` its media type in lower case.

    `charset` is what its header names, "" if it names none.
    """

    url: str
    kind: str
    charset: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that mean nothing in its character set become `�`."""
        return decoded(self.body, self.kind, self.charset)
