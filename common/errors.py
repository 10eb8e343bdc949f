"""Every exception that this project raises on purpose.

SoulError
├── Transient            try again later; a loop logs it and goes on
├── Auth                 credentials refused
├── Fatal                the process must stop and tell the owner
│   ├── ConfigError      a setting is missing or wrong
│   │   ├── SettingsError  several settings are wrong; each is reported on its own line
│   │   └── PutBack        another version of the program must run in this home
│   ├── IdentityError    SOUL.md is missing, empty, unreadable, or changed while running; SELF.md is unreadable
│   ├── HomeLocked       another process runs in this home
│   ├── ModelRefused     the model service refuses for good (401, 402, 403)
│   ├── SkillError       a skill is missing, or lacks a section or a variable
│   └── StorageError     a file cannot be written, or is damaged
│       └── MachineTrouble  the machine fails for now: the present work fails, and the process goes on
│           └── DiskFull  there is no room
├── PolicyBlocked        a rule forbids the act
│   └── PromptTooLong    the model accepts no request of that length
├── UsageError           an argument of a command is wrong
├── NotWaiting           no draft with that id waits: unknown, already decided, or expired
└── BudgetExceeded       the act would cost more than allowed

`str(error)` is one line for the owner; `remedy` is one line that says how to fix it.
"""

from collections.abc import Sequence


class SoulError(Exception):
    """Base class of all these."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Transient(SoulError):
    """Something outside the program fails for now. `retry_after` is in seconds, if it was given."""

    def __init__(self, message: str, *, remedy: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after


class Auth(SoulError):
    """Credentials were refused."""


class Fatal(SoulError):
    """The process must stop; the owner must act."""


class ConfigError(Fatal):
    """A setting is missing or wrong; `setting` is its name, if known."""

    def __init__(self, message: str, *, remedy: str = "", setting: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.setting = setting


class SettingsError(ConfigError):
    """All `mistakes` in the settings, at least one."""

    def __init__(self, mistakes: Sequence[ConfigError]) -> None:
        remedies = dict.fromkeys(mistake.remedy for mistake in mistakes)
        super().__init__(f"Settings: {'; '.join(map(str, mistakes))}", remedy=" ".join(filter(None, remedies)))
        self.mistakes = tuple(mistakes)


class PutBack(ConfigError):
    """This version proved bad: the one before must run in this home."""


class PortTaken(ConfigError):
    """Another process listens on a port; it may end by itself, so a supervisor tries again."""


class IdentityError(Fatal):
    """SOUL.md is missing, empty, unreadable, or changed while running; or SELF.md is unreadable."""


class HomeLocked(Fatal):
    """Another process runs in this home."""


class ModelRefused(Fatal):
    """The model service refuses for good."""


class SkillError(Fatal):
    """A skill is missing, or lacks a section or a variable that the code relies on."""


class StorageError(Fatal):
    """A file cannot be written, or is damaged."""


class MachineTrouble(StorageError):
    """The machine fails for now: too many open files, an I/O error, no memory.

    The present turn fails; during the start of a life the process ends. It says nothing about any file's content.
    """


class DiskFull(MachineTrouble):
    """There is no room on the disk."""


class PolicyBlocked(SoulError):
    """A rule forbids the act."""


class PromptTooLong(PolicyBlocked):
    """The model accepts no request of that length."""


class UsageError(SoulError):
    """An argument of a command is wrong."""


class NotWaiting(SoulError):
    """No draft with that id waits."""


class BudgetExceeded(SoulError):
    """The act would cost more than allowed. `retry_after` is the time in seconds until a new budget begins."""

    def __init__(self, message: str, *, remedy: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.retry_after = retry_after


UNANSWERED = (BudgetExceeded, ModelRefused, Transient)
"""The errors of a turn that no model could answer."""
