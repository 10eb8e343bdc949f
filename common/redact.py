"""Removes secrets from text: the values that this process holds, in many encodings, and known shapes of keys.

A value is found plain, reversed, in ROT13, in hex, decimal, percent and base64 (at every alignment), in pieces, in
look-alike letters, and with anything but letters and digits in between: everything is compared by its skeleton.
"""

import base64
import bisect
import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from common.text.hidden import skeleton

MASK = "[redacted]"
LEAK = "it would give away a secret"
MIN_SECRET_LENGTH = 6

_MIN_SKELETON = 8  # a shorter one would match by chance, across the words of ordinary prose
_MIN_SKELETON_OF_WORDS = 10  # the same for one of letters only
_WHOLE_BELOW = 24  # a secret this long is also known by its pieces
_PIECE, _STEP = 12, 6
_MOST_ROUNDS = 8

_WORD = r"[A-Za-z0-9_-]"
_STAND_IN = (
    r"(?:[xX*.]{3,}|\$[A-Z_]+|\$?\{[a-zA-Z_][\w.]*\}|\{\{[a-zA-Z_][\w.]*\}\}|<[a-zA-Z_-]+>"
    r"|(?i:\$?(?:your[_-](?:[a-z]+[_-]){0,4})?(?:pass(?:word|wd)?|secret|token|key|change-?me|example)(?:[_-]here)?))"
)
"""What stands for a password in documentation, in a template or in code; everything else is taken for one."""
_BETWEEN = r"(?:\\[nrt]|[\s\"',|>*#+-]){0,40}"
# NOTE(self): only what a key consists of, up to its end if it has one: "everything after it" would hide the rest of
# a text because of one line.
# NOTE(self): the group of lines is greedy: Python before 3.11.5 drops what a possessive one read before it failed.
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]*-*"
    r"(?:\s*(?:Proc-Type|DEK-Info|Comment|Version): [\w ,.@-]{0,60}+){0,4}"
    rf"(?:{_BETWEEN}+[A-Za-z0-9+/=]{{16,}}+)*"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{0,15}}{_BETWEEN}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY[A-Z ]*-*)?"
)
# NOTE(self): each shape has a string that every such key contains; the search is fast because it looks for that first.
_KEY_SHAPES = tuple(
    (sign, re.compile(shape, re.DOTALL))
    for sign, shape in (
        ("sk-", rf"\bsk-(?=[A-Za-z_-]{{0,100}}[0-9]){_WORD}{{16,}}"),  # model services
        *((sign, rf"\b{sign}-(?=[a-z-]{{0,100}}[A-Z0-9])[A-Za-z0-9-]{{20,}}") for sign in ("xai", "pplx", "tskey")),
        *((sign, rf"\b{sign}_[A-Za-z0-9]{{24,}}") for sign in ("gsk", "vck", "r8", "hf", "lin_api", "dop_v1", "npm")),
        ("k_", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),  # Stripe
        ("gh", r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
        ("glpat-", rf"\bglpat-{_WORD}{{20,}}"),
        ("pypi-AgE", rf"\bpypi-AgE{_WORD}{{30,}}"),
        ("IA", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),  # AWS
        ("AIza", rf"\bAIza{_WORD}{{35}}"),  # Google, as the next two
        ("GOCSPX-", rf"\bGOCSPX-{_WORD}{{20,}}"),
        ("ya29.", rf"\bya29\.{_WORD}{{20,}}"),
        ("xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),  # Slack, as the next two
        ("xapp-", r"\bxapp-[A-Za-z0-9-]{10,}"),
        ("hooks.slack.com", r"\bhooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
        ("SG.", rf"\bSG\.{_WORD}{{16,}}\.{_WORD}{{16,}}"),  # SendGrid
        (":AA", rf"\b[0-9]{{8,10}}:AA{_WORD}{{32,}}"),  # Telegram
        ("eyJ", rf"\beyJ{_WORD}{{8,600}}+\.{_WORD}{{8,6000}}+\.{_WORD}*"),  # JWT
        ("PRIVATE KEY", _PRIVATE_KEY),
        (
            "://",  # a password inside an address
            (
                rf"(?<=://)(?!(?:[^\s/:@]{{1,100}}:{_STAND_IN}|(?P<who>[a-zA-Z_-]{{1,20}}):(?P=who))@(?![^\s/]*@))"
                r"[^\s/:@]{1,100}:[^\s/:@]{3,100}(?=@)"
            ),
        ),
        ("earer ", r"(?<=earer )(?=[^\s0-9]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,}"),
        ("ion: Bearer ", rf"(?<=ion: Bearer )(?!{_STAND_IN}(?![A-Za-z0-9._~+/=-]))[A-Za-z0-9._~+/=-]{{16,}}"),
        (
            "-",
            r"\b(?=[a-z-]{0,18}[2-7])(?=[2-7-]{0,18}[a-z])[a-z2-7]{4}(?:-[a-z2-7]{4}){3}\b(?!-)(?<!-.{19})",
        ),  # app passwords
    )
)
_ESCAPE = re.compile(
    r"(?:%|\\x|\\u00|U\+00|&\#x)(?P<hex>[0-9a-f]{2});?|(?:=|0x)(?P<byte>[0-9a-f]{2})(?![0-9a-f])"
    r"|&\#0*(?P<decimal>[0-9]{1,3});",
    re.IGNORECASE,
)


class Redactor:
    """Finds the secrets of this process. Build one from the settings; it never shows them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH}
        forms = sorted({form for secret in known for form in _encodings(secret)}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE) if forms else None
        self._skeletons = sorted({bones for secret in known for bones in _skeletons(secret)}, key=len, reverse=True)

    def __repr__(self) -> str:
        return "Redactor(…)"

    def finds(self, text: str) -> bool:
        """Return whether `text` holds a secret, or what looks like one."""
        if len(text) < MIN_SECRET_LENGTH:
            return False
        if self._known and self._known.search(text):
            return True
        if any(sign in text and shape.search(text) for sign, shape in _KEY_SHAPES):
            return True
        if not self._skeletons:
            return False
        return any(wanted in bones for bones in map(skeleton, _views(text)) for wanted in self._skeletons)

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by a mask."""
        for _ in range(_MOST_ROUNDS):
            if not self.finds(text):
                return text
            text = self._masked(text)
        return MASK

    def value(self, value: Any) -> Any:  # noqa: ANN401 - any JSON-like value
        """Return a JSON-like value with each string in it redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def finds_in(self, value: Any) -> bool:  # noqa: ANN401 - any JSON-like value
        """Return whether any string of a JSON-like value holds a secret."""
        if isinstance(value, str):
            return self.finds(value)
        if isinstance(value, dict):
            return any(self.finds(str(key)) or self.finds_in(item) for key, item in value.items())
        return isinstance(value, list | tuple) and any(map(self.finds_in, value))

    def _masked(self, text: str) -> str:
        if self._known:
            text = self._known.sub(MASK, text)
        for _, shape in _KEY_SHAPES:
            text = shape.sub(MASK, text)
        spans = [span for units in _units(text) for span in self._found(units)]
        kept, end = [], 0
        for first, last in sorted(spans):
            if last > end:
                kept += [text[end : max(first, end)], MASK if first >= end else ""]
                end = last
        return "".join([*kept, text[end:]])

    def _found(self, units: list[tuple[str, int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the places of skeletons in the text that was split into `units`."""
        bones = "".join(bare for bare, _, _ in units)
        starts = [0]
        for bare, _, _ in units:
            starts.append(starts[-1] + len(bare))
        for wanted in self._skeletons:
            at = bones.find(wanted)
            while at >= 0:
                first = units[bisect.bisect_right(starts, at) - 1]
                last = units[bisect.bisect_right(starts, at + len(wanted) - 1) - 1]
                yield first[1], last[2]
                at = bones.find(wanted, at + len(wanted))


def _views(text: str) -> Iterator[str]:
    """Yield `text` unchanged, and with escapes such as `%41` and `0x41` resolved, if there are any."""
    yield text
    if _ESCAPE.search(text):
        yield _ESCAPE.sub(_resolved, text)


def _units(text: str) -> Iterator[list[tuple[str, int, int]]]:
    """Yield both views, split up: the skeleton of each character or escape, and where it begins and ends in `text`."""
    plain = [(skeleton(char), place, place + 1) for place, char in enumerate(text)]
    yield plain
    resolved, end = [], 0
    for escape in _ESCAPE.finditer(text):
        resolved += plain[end : escape.start()]
        resolved.append((skeleton(_resolved(escape)), escape.start(), escape.end()))
        end = escape.end()
    if end:
        yield resolved + plain[end:]


def _resolved(escape: re.Match[str]) -> str:
    return chr(int(escape["decimal"]) if escape["decimal"] else int(escape["hex"] or escape["byte"], 16))


def _encodings(secret: str) -> set[str]:
    """Return the encodings in which a secret is masked as a whole, to its last character."""
    raw = secret.encode()
    return {
        secret,
        raw.hex(),
        quote(secret, safe=""),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }


def _skeletons(secret: str) -> set[str]:
    pieces = [secret]
    if len(secret) >= _WHOLE_BELOW:
        pieces += [secret[at : at + _PIECE] for at in range(0, len(secret) - _PIECE + 1, _STEP)]
    said = {skeleton(word) for piece in pieces for word in (piece, piece[::-1], codecs.encode(piece, "rot13"))}
    said = {bones for bones in said if len(bones) >= (_MIN_SKELETON_OF_WORDS if bones.isalpha() else _MIN_SKELETON)}
    coded = {skeleton(code) for piece in pieces for code in _codes(piece.encode())}
    return said | {bones for bones in coded if len(bones) >= _MIN_SKELETON}


def _codes(raw: bytes) -> Iterator[str]:
    yield raw.hex()
    yield "".join(map(str, raw))
    for before in range(3):
        code = base64.b64encode(bytes(before) + raw).decode()
        yield code[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
