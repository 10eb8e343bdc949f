"""The log files: JSON lines under `.memory/logs/<UTC date>.log`, redacted, rotated by size and pruned by age.

The journal says why; the log says what happened when, for whoever has to look into a fault.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog

from common.clock import Clock
from common.constants import LOG_MAX_BYTES, LOG_MAX_DAYS, LOG_ROTATIONS
from common.errors import SoulError
from common.redact import Redactor
from common.wording import LineKind
from modules.runtime.console import Console

_LEVELS: dict[LineKind, int] = {"warn": logging.WARNING, "error": logging.ERROR}


class _QuietFile(RotatingFileHandler):
    """A file that does not report its errors: the terminal belongs to the owner."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Report nothing."""


class DailyFile(logging.Handler):
    """Writes each record to the file of its UTC day; old days are deleted when a new one begins."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        super().__init__()
        self._folder = folder
        self._clock = clock
        self._day = ""
        self._file: RotatingFileHandler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. Never raises: a log that cannot be written must not stop a life."""
        try:
            day = f"{self._clock.now():%Y-%m-%d}"
            if day != self._day:
                self._begin(day)
            if self._file is not None:
                self._file.emit(record)
        except OSError:
            self.handleError(record)

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # no room for the last bytes; the owner is told of the full disk elsewhere
                self._file.close()
        super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Report nothing: the terminal belongs to the owner."""

    def _begin(self, day: str) -> None:
        if self._file is not None:
            self._file.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = _QuietFile(
            self._folder / f"{day}.log", maxBytes=LOG_MAX_BYTES, backupCount=LOG_ROTATIONS, encoding="utf-8"
        )
        if self.formatter is not None:
            self._file.setFormatter(self.formatter)
        self._day = day
        oldest = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=LOG_MAX_DAYS)
        for path in self._folder.glob("????-??-??.log*"):
            if path.name[:10] < f"{oldest:%Y-%m-%d}":
                path.unlink(missing_ok=True)


@contextmanager
def logging_to(folder: Path, *, clock: Clock, redactor: Redactor) -> Iterator[None]:
    """Send every log record of this process, ours and the libraries', to the files in `folder`."""

    def redact(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        return dict(redactor.value(dict(event)))

    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        structlog.processors.format_exc_info,
    ]
    handler = DailyFile(folder, clock)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                redact,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("httpx", "httpx2", "httpcore", "httpcore2", "openai"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # NOTE(self): it warns of each run that it skips while the last one goes on, which is intended.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    try:
        yield
    except SoulError as error:
        structlog.stdlib.get_logger("soul").error(str(error), remedy=error.remedy)
        raise
    finally:
        root.removeHandler(handler)
        handler.close()


class LoggedConsole:
    """A console that also writes its lines to the log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._log = structlog.stdlib.get_logger("soul")

    def line(self, kind: LineKind, message: str, detail: str = "") -> None:
        self._console.line(kind, message, detail)
        self._log.log(_LEVELS.get(kind, logging.INFO), message, kind=kind, detail=detail)
