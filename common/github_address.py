"""Where people and Git find what a service like GitHub keeps, by the address of its interface. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

_API_PATHS = ("/api/v3",)


def github_address(api_url: str) -> str:
    """Return where a service that answers at `api_url` has its pages and repositories, without a slash at the end."""
    url = api_url.rstrip("/")
    if urlsplit(url).hostname == "api.github.com":
        return "https://github.com"
    for path in _API_PATHS:
        url = url.removesuffix(path)
    return url
