"""Which of our comments in one thread say again what we said there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from adapters.github.types import Comment
from common.clock import parse_iso

SAME_WITHIN = timedelta(hours=24)

_INTENT = re.compile(r"<!-- soul:intent=[0-9a-f]{0,64} -->")
_CLAIM = "<!-- task-claim"


def duplicate_comment_ids(comments: Iterable[Comment], login: str) -> list[int]:
    """Return the ids of our comments that repeat an older one of ours, word for word, within 24 hours.

    Capitals and blanks do not matter; mentions, numbers of issues, addresses and the markers of task events do, so that
    two attempts at a task are told apart. Of an intent's own mark nothing is compared. What holds a claim is kept.
    """
    kept: dict[str, datetime] = {}
    repeated: list[int] = []
    own = (one for one in comments if one.author.lower() == login.lower() and _CLAIM not in one.body)
    for one in sorted(own, key=lambda one: (one.created_at, one.id)):
        words, at = " ".join(_INTENT.sub("", one.body).lower().split()), parse_iso(one.created_at)
        if words in kept and at - kept[words] <= SAME_WITHIN:
            repeated.append(one.id)
        else:
            kept[words] = at
    return repeated
