"""Tasks that belong together, and what comes of them when one fails."""

from __future__ import annotations


def first_failure(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first failure itself, out of however many groups it came in: who waits for several handles it as one."""
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
