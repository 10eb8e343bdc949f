"""The failure of tasks that run together."""

from __future__ import annotations


def first_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception inside nested groups, so that a caller handles several tasks like one."""
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
