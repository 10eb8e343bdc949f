"""Answers that are asked for only if they changed: ETag, Last-Modified and 304. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import sha256


def etag_of(body: bytes) -> str:
    """The weak ETag of a body."""
    return f'W/"{sha256(body).hexdigest()}"'


def last_modified(modified: datetime, now: datetime) -> str:
    """What `Last-Modified` tells.

    What changed within this very second is dated one second back, so that who asks by it misses nothing that follows.
    """
    return format_datetime(min(modified, now - timedelta(seconds=1)).astimezone(UTC), usegmt=True)


def is_unchanged(asked: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    """Whether the client that sent these headers has the answer; an ETag decides where both are sent."""
    if known := asked.get("if-none-match"):
        tags = {tag.strip().removeprefix("W/") for tag in known.split(",")}
        return bool(tags & {etag.removeprefix("W/"), "*"})
    since = _date(asked.get("if-modified-since", ""))
    return since is not None and modified is not None and modified.replace(microsecond=0) <= since


def _date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
