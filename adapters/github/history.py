"""The history of an issue or a comment: who labelled it, and who edited its text. Times are ISO-8601 UTC."""

from dataclasses import dataclass

from adapters.github.types import Account, Repo


@dataclass(frozen=True, slots=True)
class Labelling:
    """An account added a label to an issue (`is_added`), or removed it; `at` is the time, ISO-8601."""

    label: str
    by: Account
    is_added: bool
    at: str


@dataclass(frozen=True, slots=True)
class BodyEdit:
    """One version of a text; `body` is its whole text, None if GitHub does not show it."""

    body: str | None
    editor: str
    at: str


@dataclass(frozen=True, slots=True)
class LostEdit:
    """An edit on an issue or pull request that a write of ours replaced, so that only the edit history has it."""

    repo: Repo
    number: int
    edit: BodyEdit
