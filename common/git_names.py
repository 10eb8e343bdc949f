"""Names of Git branches. Pure."""

from __future__ import annotations

_FORBIDDEN = frozenset(" ~^:?*[\\")
_MOST_BYTES = 240


def is_branch_name(name: str) -> bool:
    """Return whether a branch can be called that, and `git` and GitHub take it for nothing else.

    This is the rule of `git check-ref-format --branch`, without names that nobody could read, that are longer than a
    file's may be, or that begin as a full reference does.
    """
    parts = name.split("/")
    return (
        name.isprintable()
        and len(name.encode()) <= _MOST_BYTES
        and _FORBIDDEN.isdisjoint(name)
        and all(part and not part.startswith(".") and not part.endswith((".", ".lock")) for part in parts)
        and ".." not in name
        and "@{" not in name
        and name not in {"@", "HEAD"}
        and not name.startswith(("-", "refs/"))
    )
