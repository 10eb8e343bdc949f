"""The exit codes of all commands, as docs/cli.md lists them, and those after which no supervisor should restart."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of a command that failed; 0 is success."""

    FAILED = 1
    USAGE = 2
    MACHINE = 74
    IN_USE = 75
    CONFIG = 78
    INTERRUPTED = 130


ANEW, ASLEEP = 76, 79
"""The exit codes of a SOUL's process that is to restart at once, and of one that sleeps until a watcher wakes it."""

NO_RESTART = (ExitCode.USAGE, ExitCode.IN_USE, ExitCode.CONFIG)
"""The exit codes of failures that another start would only repeat, until the owner acts."""


def exit_code_of(error: Exception) -> ExitCode:
    """Return the exit code of a command that ended with this error."""
    # NOTE(self): imported here, as only an error needs it.
    from common import errors  # noqa: PLC0415

    match error:
        case errors.HomeLocked():
            return ExitCode.IN_USE
        case errors.MachineTrouble():
            return ExitCode.MACHINE
        case errors.UsageError() | errors.NotWaiting():
            return ExitCode.USAGE
        case errors.ConfigError() | errors.IdentityError() | errors.Auth() | errors.ModelRefused() if not isinstance(
            error, errors.PortTaken
        ):
            return ExitCode.CONFIG
        case _:
            return ExitCode.FAILED
