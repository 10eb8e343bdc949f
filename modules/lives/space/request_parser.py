"""Parses a request of the host and the talk around it: kind of act, issue, repository, names and lines. Pure.

A request usually asks for an issue on GitHub. Only two other kinds are recognized by words alone: a comment on an issue
that is named by its number, and a post on Bluesky. A target has the same name while a message is said and while its
commitment is fulfilled; the commitment carries it in `params.target`.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import regex

from adapters.space.room_addressing import parse_addressed
from adapters.space.types import HOST
from common.clock import local
from common.schemas import GITHUB_COMMITMENT_TYPES, CommitmentType
from common.text.closings import asks
from common.text.handles import UNSPACED
from common.text.hidden import skeleton
from common.text.intent_rules import LINK
from common.text.patterns import lazy_regex
from common.text.strings import u16_len, u16_slice
from common.text.untrusted import clean
from modules.lives.space.types import HistoryEntry, HostLine, Question, RequestContent
from modules.services.workspaces.addresses import WORKSPACE_PREFIX

_FLAGS = regex.IGNORECASE | regex.VERBOSE
_GITHUB = lazy_regex(
    r"""
      \b(?:github | issues? | repos? | repository | repositories | pull\ requests? | PRs? | plans? | milestones?
         | branch(?:es)? | commits? | merge)\b
      | (?<![\w&\#])\#\d
    """,
    _FLAGS,
)
_BLUESKY = lazy_regex(r"\b(?:bluesky | bsky | skeets? | social\ media)\b", _FLAGS)
_POST = lazy_regex(r"\bpost(?:s|ing)?\b", _FLAGS)
_COMMENT = lazy_regex(r"\bcomment(?:s|ing)?\b", _FLAGS)
_NEW_ISSUE = lazy_regex(
    r"\b(?:create|open|file|draft|write|make|submit|add)\s+(?:(?:a|an|another|one|the|new)\s+){0,3}issues?\b",
    regex.IGNORECASE,
)
_NUMBER = lazy_regex(r"(?<![\w&\#])\#(\d{1,9})(?![\w;]) | \bissues?[/\ ](\d{1,9})\b", _FLAGS)
_QUOTED = lazy_regex(r"[\"“„«]([^\"“”„«»]{2,2000})[\"”“»]")


def wants_post(request: str) -> bool:
    """Return whether a post on Bluesky is asked for, and nothing on GitHub."""
    return _BLUESKY.search(request) is not None and _GITHUB.search(request) is None


def may_be_a_post(request: str) -> bool:
    """Return whether a request is about posting, and about nothing on GitHub."""
    return (_POST.search(request) or _BLUESKY.search(request)) is not None and _GITHUB.search(request) is None


def issue_number(request: str) -> int | None:
    """Return the first issue named by its number, as `#12`, `issue 12` or in a link; None if there is none."""
    found = _NUMBER.search(request)
    return int(found[1] or found[2]) if found else None


def requested_type(request: str) -> CommitmentType:
    """Return what would answer the request: a comment or a post only if its words leave no doubt, else an issue."""
    if wants_post(request):
        return "post_bluesky"
    if _COMMENT.search(request) and issue_number(request) and not _NEW_ISSUE.search(request):
        return "comment_issue"
    return "create_issue"


def quoted(request: str) -> str:
    """Return the first words in quotation marks; "" if there are none."""
    found = _QUOTED.search(request)
    return found[1].strip() if found else ""


def parse_request(request: str) -> RequestContent:
    """Return what a request asks for."""
    return RequestContent(requested_type(request), quoted(request), issue_number(request))


ANSWERS_OF_OWNER: frozenset[str] = GITHUB_COMMITMENT_TYPES | {"post_bluesky"}
"""The kinds of commitment that answer a request if its assignee makes them."""


def answers(action: str, request: str, *, by_owner: bool) -> bool:
    """Return whether an action of a peer can be what the request asked for.

    From the assignee (`by_owner`) any commitment answers it; from others only an issue, a plan, or exactly what was
    asked for.
    """
    return action in (ANSWERS_OF_OWNER if by_owner else {"create_issue", "create_plan", requested_type(request)})


_LINK = lazy_regex(
    r"(?<![\w.-])(?:www\.)?github\.com[/:]([a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?)/([\w.-]{1,100})",
    regex.IGNORECASE | regex.ASCII,
)
_NO_OWNERS = frozenset({
    "about", "apps", "collections", "customer-stories", "enterprise", "events", "explore", "features", "issues",
    "login", "marketplace", "new", "notifications", "orgs", "pricing", "pulls", "search", "security", "settings",
    "site", "sponsors", "stars", "team", "topics", "trending", "users",
})  # fmt: skip


def repo_in(text: str) -> str | None:
    """Return the last repository that a text links to, as `owner/name`; pages of GitHub itself do not count."""
    found = [repo for owner, name in _LINK.findall(text) if (repo := _repo(owner, name))]
    return found[-1] if found else None


def detect_repo(messages: Sequence[HistoryEntry]) -> str | None:
    """Return the repository that the host linked last, else that a peer linked last. Our own messages do not count."""
    host = (entry for entry in reversed(messages) if entry.is_host)
    peers = (entry for entry in reversed(messages) if not entry.is_host and not entry.is_me)
    return _newest(host) or _newest(peers)


def named_repos(messages: Iterable[HistoryEntry], watched: Sequence[str]) -> tuple[str, ...]:
    """Return the repositories named by the host's newest message that names any, as `owner/name`; several mean doubt.

    A repository is named by a link, or is one of `watched` and named in full or in short. Within one message a link, or
    a name used as a place ("in pricebook"), counts before a name that may be an ordinary word.
    """
    for entry in reversed([one for one in messages if one.is_host]):
        text = _LINK.sub(" ", entry.content)
        linked = repo_in(entry.content)
        places = [repo for repo in watched if any(is_place(text, name) for name in names_of(repo))]
        words = [repo for repo in watched if any(is_word(name, text) for name in names_of(repo))]
        places += [repo for repo in words if any(_is_beside(repo, place, text) for place in places)]
        named = [*([linked] if linked else []), *places] or words
        if named:
            return tuple({repo.casefold(): repo for repo in named}.values())
    return ()


def _is_beside(repo: str, place: str, text: str) -> bool:
    """Return whether a text names `repo` right after `place`, as in "in almanac and pricebook"."""
    one, other = ("|".join(map(regex.escape, names_of(name))) for name in (place, repo))
    return regex.search(rf"(?:{one})(?:,| and| or)\s+(?:the )?(?:{other})\b", text, regex.IGNORECASE) is not None


def names_of(repo: str) -> tuple[str, ...]:
    """Return the names of a repository: `owner/name`, its name, and that without the prefix of workspaces."""
    name = repo.rpartition("/")[2]
    bare = name[len(WORKSPACE_PREFIX) :] if name.casefold().startswith(WORKSPACE_PREFIX) else ""
    return (repo, name, bare) if bare else (repo, name)


_ADDRESS = r"(?<![\w./@:-])(?:https?://|ssh://git@|git@)?(?:www\.)?github\.com[/:]"
_IN = (
    r"\b(?:in|into|on|to|for|against|under|repo|repository|repo is|repository is)[ \t]{1,3}"
    r"(?:(?:the|our|your)[ \t]{1,3})?[`(\[*_]{0,3}"
)


def is_place(sentence: str, repo: str) -> bool:
    """Return whether a sentence names a repository as a place: by its address, as `name#3`, as "in name", or alone."""
    name = rf"{regex.escape(repo)}(?:\.git)?"
    end = r"(?![\w@/-]|\.\w)"
    bare = rf"(?<![\w./@:-]){name}"
    forms = (
        rf"{_ADDRESS}{name}(?![\w@-]|\.\w)",
        rf"{bare}#\d",
        rf"{bare}{end}[`)\]*_]{{0,3}}[ \t]{{1,3}}repo(?:sitory)?\b",
        rf"{_IN}{name}{end}",
        rf"\A\W*{name}{end}\W*\Z",
    )
    return any(regex.search(form, sentence, regex.IGNORECASE) for form in forms)


def is_word(name: str, text: str) -> bool:
    """Return whether a text holds the name as a word of its own, and not as a part of a path."""
    if name.casefold() not in text.casefold():
        return False
    letter = rf"[^\W{UNSPACED}]"
    alone = rf"(?<!{letter}|[./-]){regex.escape(name)}(?!{letter}|[/@-]|\.{letter})"
    return regex.search(alone, text, regex.IGNORECASE) is not None


def _newest(messages: Iterable[HistoryEntry]) -> str | None:
    return next((repo for entry in messages if (repo := repo_in(entry.content))), None)


def _repo(owner: str, name: str) -> str | None:
    bare = name.rstrip(".").removesuffix(".git")
    return f"{owner}/{bare}" if owner.lower() not in _NO_OWNERS and bare.strip(".") else None


_LINES_BEFORE = 6
_LINE_CHARS = 320


def host_line(history: Sequence[HistoryEntry], entry: HistoryEntry) -> HostLine:
    """Return a message of the host with the lines before it, and with the question that it may answer."""
    before = history[: history.index(entry)]
    shown = (f"{HOST if one.is_host else one.name}: {one.content[:_LINE_CHARS]}" for one in before[-_LINES_BEFORE:])
    return HostLine(entry.content, tuple(shown), _question(before, entry.content))


def _question(before: Sequence[HistoryEntry], answer: str) -> Question | None:
    """Return the question since the host's previous message: of the agent that the answer names, else the last one."""
    asked: dict[str, Question] = {}
    for one in reversed(before):
        if one.is_host:
            break
        if asks(LINK.sub("", one.content)):
            asked.setdefault(one.name, Question(one.name, one.content))
    if not asked:
        return None
    named = parse_addressed(answer, sorted({one.name for one in before if not one.is_host}))
    return next((asked.get(name) for name in named), next(iter(asked.values())))


_THREAD_DIGITS = 16
_POINT_WORDS = 10
_NOT_WORD = lazy_regex(r"[^\w\s]")


def conversation_thread_uri(name: str, content: str) -> str:
    """Return the URI of the conversation that a message began: `space://conversation/<16 hex digits>`."""
    text = f"{name}:{content}"
    whole = u16_slice(text, u16_len(text))
    return f"space://conversation/{hashlib.sha256(whole.encode()).hexdigest()[:_THREAD_DIGITS]}"


def point_summary(name: str, content: str) -> str:
    """Return what a message was about: `<name>: <its first ten words, without punctuation>`."""
    return f"{name}: {' '.join(_NOT_WORD.sub('', content).split()[:_POINT_WORDS])}"


YOU = "YOU"
MOST_NAMES = 30

_NAME_CHARS = 40
_MOST_WORDS = 3
_READ_CHARS = 200
_NO_SIGN_OF_A_NAME = regex.compile(r"[^\p{L}\p{M}\p{N}\s_.'-]+")
_TAKEN = {skeleton(name): name for name in (HOST, YOU)}


def shown(name: str, *, is_host: bool = False) -> str:
    """Return a name to show: at most 40 characters and three words; one that looks like the host's or ours is marked.

    A shortened name ends with `#` and four hexadecimal digits made from the whole name, so that it does not read as the
    name of somebody else who is called exactly that.
    """
    if is_host:
        return HOST
    plain = " ".join(_NO_SIGN_OF_A_NAME.sub(" ", clean(name[:_READ_CHARS])).split()[:_MOST_WORDS])[:_NAME_CHARS]
    taken = _TAKEN.get(skeleton(plain))
    if taken:
        return f"not-{taken}"
    is_whole = plain == " ".join(name.split())
    return plain if is_whole else f"{plain or '?'}#{zlib.crc32(name.encode(errors='replace')) & 0xFFFF:04x}"


def listed(names: Iterable[str]) -> str:
    """Return several names as a list, at most 30; `…` stands for the others."""
    every = list(names)
    told = [shown(name) for name in every[:MOST_NAMES]]
    return ", ".join([*told, "…"] if len(every) > MOST_NAMES else told)


_DIGEST_SHARE = 4
_CUT = " […]"
_INDENT = "\n    "


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript: `digest` has a line for each of the oldest messages, `lines` the newest messages whole."""

    digest: tuple[str, ...]
    lines: tuple[str, ...]


def transcript(
    history: Sequence[HistoryEntry], *, estimate: Callable[[str], int], tokens: int, timezone: str = ""
) -> Transcript:
    """Return what fits into `tokens`, with preference for the newest messages; our own are marked YOU."""
    told_whole = [told(entry, timezone) for entry in history]
    costs = [estimate(line) + 1 for line in told_whole]
    for_digest = tokens // _DIGEST_SHARE if sum(costs) > tokens else 0
    lines: list[str] = []
    left = tokens - for_digest
    for line, cost in zip(reversed(told_whole), reversed(costs), strict=True):
        if cost > left:
            break
        lines.insert(0, line)
        left -= cost
    older = history[: len(history) - len(lines)]
    if older and not lines:
        share = max(0, tokens - estimate(_CUT)) / max(1, estimate(told(older[-1], timezone)))
        line = told(older[-1], timezone)
        return Transcript((), (f"{line[: int(len(line) * share)]}{_CUT}",))
    return Transcript(_digest(older, estimate, for_digest), tuple(lines))


def told(entry: HistoryEntry, timezone: str = "", me: str = YOU) -> str:
    """Return one message as a line, `[12:04] rebecca: …`; `me` stands for our own name."""
    words = clean(entry.content).replace("\n", _INDENT)
    return f"[{local(entry.at, timezone):%H:%M}] {_speaker(entry, me)}: {words}"


def _speaker(entry: HistoryEntry, me: str = YOU) -> str:
    return me if entry.is_me else shown(entry.name, is_host=entry.is_host)


def _digest(older: Sequence[HistoryEntry], estimate: Callable[[str], int], tokens: int) -> tuple[str, ...]:
    kept: list[str] = []
    for entry in reversed(older):
        line = clean(point_summary(_speaker(entry), entry.content))
        tokens -= estimate(line) + 1
        if tokens < 0:
            break
        kept.insert(0, line)
    return tuple(kept)
