"""Small rules for strings: normal forms, the keys by which two texts count as the same, sizes in UTF-16 and tokens.

Room members that are written in JavaScript count code units. Programs that elect a member by hashing the same text must
cut it at the same place, and a character beyond U+FFFF is one character here and two units there.
"""

import hashlib
import math
import re
import unicodedata

import regex

from common.text.patterns import lazy_regex

_URL = re.compile(r"https?://\S+")
_BARE_URL = re.compile(r"(?<![\w@.-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}/\S*", re.IGNORECASE)
_HANDLE = re.compile(r"@[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_PROFILE = re.compile(
    r"(?:https?://)?(?:www\.)?(?:bsky\.app/profile|github\.com)/@?([^/\s?#]+)/?(?:[?#]\S*)?|at://([^/\s]+)/?"
)
_SPACE = re.compile(r"\s+")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNSEEN = re.compile(r"[\u00ad\u2060\ufeff]|(?<![@!\w])\u200b")
_QUOTES = str.maketrans(dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟″", '"'))  # noqa: RUF001 - intended characters
_ALIKE = lazy_regex(r"(?P<mark>\p{Quotation_Mark})|(?P<dash>\p{Dash})|(?P<dots>\u2026|\.{3})|(?P<blank>\s+(?:>\s*)*)")
_FORMS = {"mark": r"\p{Quotation_Mark}", "dash": r"\p{Dash}", "dots": r"(?:\u2026|\.{3})", "blank": r"\s+(?:>\s*)*"}
_SLUG_SIGNS = str.maketrans(
    dict.fromkeys("·/_,:;", "-") | {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d"}
)
_NO_SLUG = re.compile(r"[^a-z0-9-]+")
_HYPHENS = re.compile(r"-{2,}")
_TRAILING = ".,;:!?)"
_NORMALIZED_LENGTH = 200
_QUOTED = {('"', '"'), ("'", "'"), ("\u00ab", "\u00bb"), ("\u00bb", "\u00ab"), ("\u300c", "\u300d")}
"""Pairs of opening and closing quotation marks, after `normalize_quotes`."""


def as_typed(text: str) -> str:
    """Return `text` as it looks: with plain spaces instead of hard and wide ones, without invisible editor leftovers.

    A zero-width space after an @ or inside a word stays, since it may keep a mention or a closing word from working.
    """
    return _UNSEEN.sub("", _SPACES.sub(" ", text))


def straighten(text: str) -> str:
    """Return `text` with plain apostrophes instead of typographic ones."""
    return text.replace("’", "'").replace("‘", "'")  # noqa: RUF001 - these characters are meant


def normalize_quotes(text: str) -> str:
    """Return `text` with plain quotation marks instead of typographic ones, single and double."""
    return text.translate(_QUOTES)


def is_given_in(text: str, said: str) -> bool:
    """Return whether `said` gives `text` word for word: in quotation marks, or as all that follows a colon."""
    words, whole = " ".join(normalize_quotes(text).split()), " ".join(normalize_quotes(said).split())
    start = whole.find(words) if words else -1
    while start >= 0:
        before, after = whole[:start].rstrip(), whole[start + len(words) :].lstrip()
        if before.endswith((":", "\uff1a")) and not after:
            return True
        # NOTE(self): an apostrophe inside a word is not a quotation mark.
        is_inside = before.endswith("'") and (before[-2:-1].isalnum() or after[1:2].isalnum())
        is_open = before[-1:] != '"' or before.count('"') % 2 == 1  # between two quotations nothing is quoted
        if before and after and (before[-1], after[0]) in _QUOTED and is_open and not is_inside:
            return True
        start = whole.find(words, start + 1)
    return False


def quotation(quote: str, text: str) -> str:
    """Return what `quote` quotes from `text`, as it stands there, on one line; "" if `text` does not hold it.

    Kinds of quotation marks and dashes, an ellipsis, the case of letters, white space and Markdown's marks of quoted
    lines may differ, since a model that copies words changes them.
    """
    words, parts, end = unicodedata.normalize("NFC", quote).strip(), list[str](), 0
    for one in _ALIKE.finditer(words):
        parts += [regex.escape(words[end : one.start()]), _FORMS[one.lastgroup or ""]]
        end = one.end()
    pattern = "".join([*parts, regex.escape(words[end:])])
    found = regex.search(pattern, unicodedata.normalize("NFC", text), regex.IGNORECASE) if words else None
    return regex.sub(_FORMS["blank"], " ", found[0]) if found else ""


def normalize_post_text(text: str) -> str:
    """Return only the prose, for comparison: lower case, no handles, no links, single spaces, first 200 characters."""
    return _prose(text)[:_NORMALIZED_LENGTH]


def normalized_title(title: str) -> str:
    """Return a title for comparison: without case, extra spaces, compatibility forms and the final punctuation."""
    plain = " ".join(unicodedata.normalize("NFKC", title).casefold().split())
    return plain.rstrip(" .!?…") or plain


def dedup_key(text: str, media_id: str | None = None) -> str:
    """Return the key by which two outgoing texts count as the same: SHA-256 in hex of prose, handles, links and media.

    Texts that differ only in whom they name, in their link or in their image are different.
    """
    links = sorted({_canonical(match) for match in _URL.findall(text) + _BARE_URL.findall(_URL.sub(" ", text))})
    parts = [_prose(text), *handles(text), *links, *([media_id] if media_id else [])]
    material = "\n".join(part for part in parts if part) or text.strip()
    return hashlib.sha256(material.encode(errors="replace")).hexdigest()


def account_name(said: str) -> str:
    """Return the handle, login or DID that somebody gave, alone, after an @, or as the address of a profile."""
    profile = _PROFILE.fullmatch(said.strip())
    return (profile[1] or profile[2] if profile else said.strip().removeprefix("@")).strip()


def handles(text: str) -> tuple[str, ...]:
    """Return whom `text` names: each `@handle` outside of links once, in lower case and alphabetical order."""
    return tuple(sorted({match.lower() for match in _HANDLE.findall(_URL.sub(" ", text))}))


def _prose(text: str) -> str:
    bare = _HANDLE.sub(" ", _BARE_URL.sub(" ", _URL.sub(" ", text.lower())))
    return _SPACE.sub(" ", bare).strip()


def _canonical(url: str) -> str:
    stripped = re.sub(r"^https?://(www\.)?", "", url.rstrip(_TRAILING).lower())
    return stripped.rstrip("/")


def both_ends(text: str, most: int) -> str:
    """Return a text, cut to its beginning and end if it is longer than `most` characters, with a note of the cut."""
    half, left = most // 2, len(text) - most // 2 * 2
    return text if len(text) <= most else f"{text[:half]}\n… ({left} characters left out)\n{text[-half:]}"


def create_slug(text: str) -> str:
    """Return a text as the name of a branch or part of a URL: lower case, words joined by hyphens; `untitled` if empty.

    Diacritics are removed, and punctuation between words becomes hyphens.
    """
    lowered = text.lower().translate(_SLUG_SIGNS)
    decomposed = unicodedata.normalize("NFD", lowered)
    plain = "".join(sign for sign in decomposed if not unicodedata.combining(sign)).replace("&", "-and-")
    return _HYPHENS.sub("-", _NO_SLUG.sub("", _SPACE.sub("-", plain))).strip("-") or "untitled"


def likeness(one: str, other: str, *, least: float = 0) -> float:
    """Return how alike two texts are, from 0 to 100 (`rapidfuzz.fuzz.ratio`); 0 below `least`."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - a SOUL that compares nothing does without its 3 MiB

    return fuzz.ratio(one, other, score_cutoff=least)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SIGN_BIT = 1 << 31


def u16_len(text: str) -> int:
    """Return how many UTF-16 code units `text` has."""
    return len(_units(text)) // 2


def u16_slice(text: str, units: int) -> str:
    """Return the first `units` code units of `text`; half a pair, cut or found, becomes U+FFFD."""
    return _units(text)[: 2 * max(units, 0)].decode("utf-16-le", "replace")


def rolling_hash(text: str, *, seed: int = 0, factor: int = 31) -> int:
    """Return the signed 32-bit hash `h * factor + unit` over the code units of `text`, equal in every language."""
    units = _units(text)
    value = seed
    for place in range(0, len(units), 2):
        value = (value * factor + int.from_bytes(units[place : place + 2], "little")) & 0xFFFF_FFFF
    return value - (1 << 32) if value & _SIGN_BIT else value


def base36(number: int) -> str:
    """Return `number` in digits and lower-case letters, with its minus sign."""
    rest, digits = abs(number), ""
    while True:
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
        if not rest:
            return f"-{digits}" if number < 0 else digits


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


CHARS_PER_TOKEN = 4


def estimate_roughly(text: str) -> int:
    """Return an estimate by the rule of thumb: four characters a token, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)
