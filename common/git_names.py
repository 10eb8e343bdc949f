"""Names of Git branches, and where the pages and repositories of a service like GitHub are. Pure."""

from urllib.parse import urlsplit

_FORBIDDEN = frozenset(" ~^:?*[\\")
_MOST_BYTES = 240


def is_branch_name(name: str) -> bool:
    """Return whether this is a valid branch name that `git` and GitHub cannot mistake for anything else.

    This is the rule of `git check-ref-format --branch`, without names that are not printable, are longer than a file
    name may be, or begin like a full reference.
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


_API_PATHS = ("/api/v3",)


def github_address(api_url: str) -> str:
    """Return the base URL of the pages and repositories of the service with API `api_url`, without a trailing slash."""
    url = api_url.rstrip("/")
    if urlsplit(url).hostname == "api.github.com":
        return "https://github.com"
    for path in _API_PATHS:
        url = url.removesuffix(path)
    return url
