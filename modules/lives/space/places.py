"""Where a promise on GitHub may be kept: only in a repository that somebody in the talk has named. Pure.

A small model writes down a repository that it read in an example; a large one may invent a likely name.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

from common.schemas import Commitment
from modules.lives.space.filters import Filtered, LeftOut
from modules.lives.space.scene import Scene

UNNAMED = "[VALIDATION REJECTED] Unnamed repository"

_REFUSED = regex.compile(
    r"\b(?:not|never|no|nor|neither|cannot|\w+n['\u2019]t|dont|except|without|avoid|instead of|rather than|unless|stop"
    r"|nicht|kein\w{0,2}|nie|niemals|pas|jamais|nunca|não|non|не|нет|никогда)\b|[不别別勿]",
    regex.IGNORECASE,
)
_REPORTED = regex.compile(
    r"\A\W*+(?:[\w@'\u2019-]++\s++){1,3}(?:says|said|wrote|writes|tells|told|asks|asked|wants|claims|claimed|suggests"
    r"|suggested|quotes|quoted)\b|\baccording to\b",
    regex.IGNORECASE,
)
_QUOTATION = regex.compile(
    r"""^[ \t]*>[^\n]*|"[^"]*"?|[\u201c\u201e][^\u201c\u201d]*[\u201c\u201d]?|\u00ab[^\u00bb]*\u00bb?"""
    r"""|(?<!\w)['\u2018][^'\u2018\u2019\n]*['\u2019]""",
    regex.MULTILINE,
)
_SENTENCE = regex.compile(r"[.!?;][)\]]*(?=\s)|\n")
_LINK = r"(?<![\w./@:-])(?:https?://|ssh://git@|git@)?(?:www\.)?github\.com[/:]"
_IN = r"\b(?:in|into|on|to|for|against|under|repo|repository|repo is|repository is)[ \t]{1,3}[`(\[*_]{0,3}"


def placed(commitments: Iterable[Commitment], scene: Scene) -> Filtered:
    """The commitments, in the repository of the talk where nobody named theirs; left out where there is none."""
    kept: list[Commitment] = []
    left_out: list[LeftOut] = []
    for one in commitments:
        if not one.is_github or (one.repo and is_named(one.repo, scene)):
            kept.append(one)
        elif scene.repo:
            kept.append(one.model_copy(update={"repo": scene.repo}))
        else:
            reason = f"nobody named {one.repo}" if one.repo else "no repository is known"
            left_out.append(LeftOut(one, UNNAMED, f"{one.type}: {reason}"))
    return Filtered(tuple(kept), tuple(left_out))


def named_by_host(scene: Scene, repo: str = "") -> bool:
    """Whether a repository, else that of the talk, is where the host wants the work; a guest may have named its own.

    Without the host's word the talk itself is not carried there: who speaks in a room does not speak to everybody.
    The newest message of the host that speaks of it decides. In doubt it is not named, and its owner is asked.
    """
    wanted = repo or scene.repo
    if not wanted:
        return False
    verdicts = (_wants(entry.content, wanted) for entry in reversed(scene.history) if entry.is_host)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _wants(text: str, repo: str) -> bool | None:
    """Whether the writer wants work in `owner/name`; False if a sentence refuses or reports it, None if none names it.

    It is named by its address on github.com, as `owner/name#3`, alone in a sentence, or where a word before or after
    says that it is a place: two words with a stroke between them are more often something else, or a path.
    """
    own = _QUOTATION.sub(" ", text)
    sentences = [one for one in _SENTENCE.split(own) if _mentions(one, repo)]
    if any(_REFUSED.search(_without(one, repo)) or _REPORTED.search(_without(one, repo)) for one in sentences):
        return False
    if any(_is_place(one, repo) for one in sentences):
        return True
    return False if _mentions(text, repo) and not sentences else None


def _mentions(text: str, repo: str) -> bool:
    return repo.casefold() in text.casefold()


def _without(sentence: str, repo: str) -> str:
    """The sentence without the name, whose own words refuse nothing."""
    return regex.sub(regex.escape(repo), " ", sentence, flags=regex.IGNORECASE)


def _is_place(sentence: str, repo: str) -> bool:
    name = rf"{regex.escape(repo)}(?:\.git)?"
    end = r"(?![\w@/-]|\.\w)"
    bare = rf"(?<![\w./@:-]){name}"
    forms = (
        rf"{_LINK}{name}(?![\w@-]|\.\w)",
        rf"{bare}#\d",
        rf"{bare}{end}[`)\]*_]{{0,3}}[ \t]{{1,3}}repo(?:sitory)?\b",
        rf"{_IN}{name}{end}",
        rf"\A\W*{name}{end}\W*\Z",
    )
    return any(regex.search(form, sentence, regex.IGNORECASE) for form in forms)


def is_named(repo: str, scene: Scene) -> bool:
    """Whether others have named `owner/name`, or it is what the talk is about."""
    if scene.repo and scene.repo.casefold() == repo.casefold():
        return True
    return any(_names(entry.content, repo) for entry in scene.history if not entry.is_me)


def _names(text: str, repo: str) -> bool:
    """Whether `owner/name` stands in a text, and not only as the beginning or the end of another."""
    whole = rf"(?<![\w.-]){regex.escape(repo)}(?:\.git)?(?![\w-]|\.\w)"
    return regex.search(whole, text, regex.IGNORECASE) is not None
