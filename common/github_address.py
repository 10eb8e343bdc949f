"""The address of the pages and repositories of a service like GitHub, from that of its API. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

_API_PATHS = ("/api/v3",)


def github_address(api_url: str) -> str:
    """Return the base URL of the pages and repositories of the service with API `api_url`, without a trailing slash."""
    url = api_url.rstrip("/")
    if urlsplit(url).hostname == "api.github.com":
        return "https://github.com"
    for path in _API_PATHS:
        url = url.removesuffix(path)
    return url
