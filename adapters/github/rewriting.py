"""Rewrites a text on GitHub that others may edit at the same time, so that no edit of theirs is lost.

GitHub overwrites a text whatever it holds. So a text is read, changed and written at once, and then its edit history
tells whether somebody edited it in between. If so, the same change is made to their text. If it does not fit their
text, that is put back as it was.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import dropwhile
from typing import TypeVar

from adapters.github.client import GitHub
from adapters.github.history import BodyEdit, LostEdit
from adapters.github.types import Comment, Issue, Repo
from common.result import ApiResult, Err, Ok

T = TypeVar("T", Issue, Comment)

logger = logging.getLogger(__name__)


async def rewrite(
    github: GitHub,
    place: tuple[Repo, int],
    read: Callable[[], Awaitable[ApiResult[T]]],
    change: Callable[[T], str | Err],
    put: Callable[[str], Awaitable[ApiResult[T]]],
    *,
    always: bool = False,
) -> ApiResult[T]:
    """Change the text of an issue, pull request or comment, and return the result.

    Args:
        github: the account that writes.
        place: the repository, and the number of the issue or pull request that holds the text.
        read: returns the present issue or comment.
        change: returns the new text, or why the present one does not fit. Pure; called again for a text that somebody
            wrote in between. Its error is returned unchanged.
        put: writes a text.
        always: whether to write even an unchanged text, because `put` changes more than the text.

    """
    async with github.burst():
        found = await read()
        if isinstance(found, Err):
            return found
        text = change(found.data)
        if isinstance(text, Err):
            return text
        is_same = _alike(text, found.data.body)
        if text == found.data.body and not always:
            return found
        written = await put(text)
        if isinstance(written, Err) or is_same:
            return written
        return await _put_back(github, place, found.data, written.data, change=change, put=put)


async def _put_back(
    github: GitHub,
    place: tuple[Repo, int],
    read: T,
    written: T,
    *,
    change: Callable[[T], str | Err],
    put: Callable[[str], Awaitable[ApiResult[T]]],
) -> ApiResult[T]:
    """Restore an edit that was made between the read and the write.

    It is reported if it cannot be restored, and so is another edit made meanwhile.
    """
    edit = await _edit_between(github, read.body, written)
    if edit is None or edit.body is None:
        return Ok(written)
    text = change(replace(read, body=edit.body))
    restored = edit.body if isinstance(text, Err) else text
    if _alike(restored, written.body):
        return Ok(written)
    again = await put(restored)
    lost = edit if isinstance(again, Err) else await _edit_between(github, written.body, again.data)
    if lost and github.on_lost_edit:
        github.on_lost_edit(LostEdit(*place, lost))
    if isinstance(again, Err):
        return Ok(written)
    return text if isinstance(text, Err) else again


async def _edit_between(github: GitHub, before: str, now: Issue | Comment) -> BodyEdit | None:
    """Return the edit that our write replaced, if its text differs from `before`, the text before our write."""
    edits = await github.edits(now.node_id)
    if isinstance(edits, Err):
        logger.info("GitHub, %s: %s", now.html_url, edits.error)
        return None
    older = dropwhile(lambda one: not _alike(one.body or "", now.body), edits.data)
    next(older, None)
    replaced = next(older, None)
    return None if replaced is None or replaced.body is None or _alike(replaced.body, before) else replaced


def _alike(one: str, other: str) -> bool:
    """Return whether two texts are equal except for line endings and trailing space."""
    return one.replace("\r\n", "\n").rstrip() == other.replace("\r\n", "\n").rstrip()
