"""What the owner's newest line gives of a call: what a judge is shown, and which words count as theirs. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Literal, get_origin

import regex
from pydantic import BaseModel

from adapters.atproto.records import parse_at_uri
from common.text.handles import UNSPACED
from common.text.strings import account_name, normalize_quotes
from modules.services.agent.tools.types import OwnerRequest, Tool

_LETTER = rf"[^\W{UNSPACED}]"
_BEFORE = rf"(?<!{_LETTER})(?<!{_LETTER}[-.])"
_BEHIND = rf"(?![-.]?{_LETTER})"
_SAFE = regex.compile(r"[a-z]+(?:_[a-z]+){0,3}|[0-9T:.+Z-]{1,32}")
"""A name of a field, a number, a moment: nothing that anybody could say something in."""

_SCHEME = regex.compile(r"https?://(?:www\.)?", regex.IGNORECASE)
_MOST_SAFE = 32
_EDGES = ".,;:!?\"'()[]…"
_FEWEST_WORDS, _MOST_WORDS = 3, 300


def is_said(text: str, line: str) -> bool:
    """Return whether `text` stands in `line` word for word: in any case, with any quotation marks, as words of its own.

    In scripts without spaces it may stand anywhere.
    """
    words = _plain(text)
    return bool(words) and regex.search(rf"{_BEFORE}{regex.escape(words)}{_BEHIND}", _plain(line)) is not None


def stretch_of(text: str, line: str) -> str:
    """Return the stretch of `line` that `text` gives with some of its words left out; "" where it does not.

    `text` must have words of the line in their order, in pieces of three words or more.
    """
    raw = line.split()
    at = [place for place, word in enumerate(raw) if _bare(word)]
    said, words = [_bare(raw[place]) for place in at], [bare for word in text.split() if (bare := _bare(word))]
    if len(words) > min(len(said), _MOST_WORDS):
        return ""
    pieces = [one for one in SequenceMatcher(None, said, words, autojunk=False).get_matching_blocks() if one.size]
    if sum(one.size for one in pieces) < len(words) or min((one.size for one in pieces), default=0) < _FEWEST_WORDS:
        return ""
    return " ".join(raw[at[pieces[0].a] : at[pieces[-1].a + pieces[-1].size - 1] + 1])


def in_stretches(request: OwnerRequest, arguments: BaseModel, tool: Tool) -> BaseModel:
    """Return a call with the whole stretch of the owner's line in each of `tool.stretches` that leaves words of it out.

    What they said is then done with all of their words, so that none which forbids it can be left out.
    """
    given = ((name, getattr(arguments, name)) for name in tool.stretches)
    found = {name: stretch_of(text, request.text) for name, text in given if not is_said(text, request.text)}
    return arguments.model_copy(update={name: stretch for name, stretch in found.items() if stretch})


def shown_call(request: OwnerRequest, arguments: BaseModel, tool: Tool | None = None) -> str:
    """Return all arguments of a call, in the words of the owner's line; "" where one is not the owner's.

    Without those that `tool` takes from the line itself.

    An account counts as theirs by its handle, a post by its address or by its author, an address with or without its
    scheme, all else word for word. Numbers, moments and choices are shown as they are: a judge compares them.
    """
    told: list[str] = []
    for name, field in type(arguments).model_fields.items():
        value = getattr(arguments, name)
        is_default = value == field.get_default(call_default_factory=True) and not field.is_required()
        if is_default or (tool and name in tool.from_line):
            continue
        is_choice = get_origin(field.annotation) is Literal
        for one in _leaves(value):
            words = str(one) if is_choice or not isinstance(one, str) else _given(one.strip(), request)
            if not words:
                return ""
            told.append(f"{name}: {words}")
    return "; ".join(told)


def _leaves(value: Any) -> Iterator[Any]:  # noqa: ANN401 - an argument may be anything
    """Return the single values in an argument, without the empty ones."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        for one in value:
            yield from _leaves(one)
    elif value not in {None, ""}:
        yield value


def _given(text: str, request: OwnerRequest) -> str:
    """Return a text as the owner's line gives it, or as it is where nobody can say anything in it; else ""."""
    if len(text) <= _MOST_SAFE and _SAFE.fullmatch(text):
        return text
    if account := _account(text, request):
        return account
    if post := parse_at_uri(text):
        names = [post.repo, *request.names_of(post.repo)]
        links = [f"bsky.app/profile/{name.removeprefix('@')}/post/{post.rkey}" for name in names]
        found = next((one for one in (text, *links) if is_said(one, request.text)), "")
        return found or next((f"a post of {name}" for name in names[1:]), "")
    address = _SCHEME.sub("", text).rstrip("/")
    return text if is_said(text, request.text) or (address != text and is_said(address, request.text)) else ""


def _account(text: str, request: OwnerRequest) -> str:
    """Return the name by which the line gives an account, by its DID or its handle; "" for any other."""
    if text.startswith("did:"):
        names = request.names_of(text) or ([text] if is_said(text, request.text) else [])
        return names[0] if names else ""
    handle = account_name(text).lower()
    known = {name.removeprefix("@").lower() for name, did in (*request.named.items(), *request.mentions) if did}
    return handle if handle in known else ""


def _bare(word: str) -> str:
    return _plain(word).strip(_EDGES)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", normalize_quotes(text)).casefold().split())
