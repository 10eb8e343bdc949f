"""The list of operational texts, what each must contain, and how it is filled in. Pure.

A text is named by its group and key with a dot between: `github.task_claim`. Placeholders stand in double braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from common.text.untrusted import clean

VERSION = 1
SHORT_CHARS, LONG_CHARS = 120, 2_000

_PLACEHOLDER = re.compile(r"\{\{ {0,4}(\w{1,32}) {0,4}\}\}")
_ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PhraseForm:
    """The requirements on a text.

    Attributes:
        placeholders: the required ones; no others are allowed.
        most_chars: its greatest length, placeholders included.
        tokens: words by which peers recognise the text, in any case.
        required: whether a file of phrases must have it.

    """

    placeholders: frozenset[str] = frozenset()
    most_chars: int = LONG_CHARS
    tokens: tuple[str, ...] = ()
    required: bool = True


def _form(placeholders: str = "", most: int = LONG_CHARS, *tokens: str, required: bool = True) -> PhraseForm:
    return PhraseForm(frozenset(placeholders.split()), most, tokens, required)


def _optional(placeholders: str = "", most: int = LONG_CHARS, *tokens: str) -> PhraseForm:
    return _form(placeholders, most, *tokens, required=False)


_TASK = "**task {{number}}"
_DOCUMENT_PROBLEMS = (
    *("empty", "too_long", "cut_off", "no_headings", "open_code", "markup", "repeats", "gap", "link"),
    *("instructions", "goal", "unchanged", "secret"),
)
FORMS: Mapping[str, PhraseForm] = {
    "fulfillment.create_issue": _form("url", SHORT_CHARS),
    "fulfillment.create_plan": _form("url", SHORT_CHARS),
    "fulfillment.default": _form("url", SHORT_CHARS),
    "bluesky.github_account": _optional("username", SHORT_CHARS, "`{{username}}`"),
    "bluesky.workspace_made": _optional("url", SHORT_CHARS),
    "bluesky.plan_made": _optional("url", SHORT_CHARS),
    "bluesky.issue_made": _optional("url", SHORT_CHARS),
    "bluesky.comment_made": _optional("url", SHORT_CHARS),
    "bluesky.plan_extended": _optional("tasks url", SHORT_CHARS),
    "bluesky.plan_complete": _optional("url", SHORT_CHARS),
    "task_claim": _form("number title", SHORT_CHARS),
    "github.task_claim": _form("number title"),
    "github.task_opened": _optional("number title details"),
    "github.task_found": _optional("number title details"),
    "github.task_blocked": _form("number title details", LONG_CHARS, _TASK, "blocked"),
    "github.task_failed": _form("number title details", LONG_CHARS, _TASK, "failed"),
    "github.plan_complete": _form(),
    "github.workspace_finished": _form("summary"),
    "github.task_timeout": _optional("number title status assignee minutes"),
    "github.task_left": _optional("number title assignee url"),
    "github.task_abandoned": _optional(
        "number count", LONG_CHARS, "**task {{number}}**", "has failed", "times", "will not be retried"
    ),
    "github.plan_superseded": _optional("url"),
    "github.plan_carried_over": _optional("url tasks"),
    "github.plan_end_told": _optional("author"),
    "github.plan_unread": _optional("lines"),
    "github.plan_synthesized": _optional("url", SHORT_CHARS),
    "github.issue_done": _optional("url"),
    "github.issue_stale_closed": _optional("days"),
    "github.issue_handled_closed": _optional(),
    "github.edit_lost": _optional("editor at"),
    "github.sentinel_reopened_work": _optional(),
    "github.sentinel_question": _optional(),
    "github.committed_in_room": _optional(),
    "github.committed_in_thread": _optional("url"),
    "github.committed_on_bluesky": _optional(),
    "task_problem.error": _optional(),
    "task_problem.too_slow": _optional(),
    "task_problem.unreadable": _optional(),
    "task_problem.document_unreadable": _optional(),
    "task_problem.document_too_long": _optional(),
    "task_problem.document_unfit": _optional(),
    "task_problem.code_blocked": _optional(),
    "task_problem.code_stuck": _optional(),
    "task_problem.code_unfinished": _optional(),
    "task_problem.code_tests_failed": _optional(),
    "task_problem.code_unfit": _optional(),
    "task_problem.not_allowed": _optional(),
    "task_problem.not_sent": _optional(),
    **{f"document_problem.{problem}": _optional() for problem in _DOCUMENT_PROBLEMS},
    "github.pull_request": _optional("number title issue plan goal count files", LONG_CHARS, "part of #{{issue}}"),
    "github.code_pull_request": _optional(
        "number title issue plan goal summary stat count files tests", LONG_CHARS, "part of #{{issue}}"
    ),
    "github.tests_passed": _optional("commands"),
    "github.tests_missing": _optional("commands"),
    "github.tests_empty": _optional("commands"),
    "github.tests_timeout": _optional("commands"),
    "github.tests_memory": _optional("commands"),
    "github.tests_crashed": _optional("commands"),
    "github.tests_unnamed": _optional("commands"),
    "github.not_installed": _optional("reason"),
    "github.files_unchanged": _optional("files"),
    "github.tests_none": _optional(),
    "github.tests_failed": _optional("command output"),
    "github.tests_failing": _optional("tests"),
    "github.tests_refused": _optional(),
    "github.tests_hollow": _optional("commands"),
    "github.tests_still_failing": _optional("commands"),
    "github.tests_mended": _optional("tests"),
    "github.tests_counted": _optional("added removed total"),
    "github.tests_removed": _optional("tests"),
    "github.tests_weaker": _optional("files"),
    "github.tests_command_kept": _optional(),
    "github.tests_command_new": _optional("commands"),
    "github.tests_command_changed": _optional("commands"),
    "github.hidden_characters": _optional("files"),
    "github.secrets_added": _optional("files"),
    "github.revised": _optional("summary", LONG_CHARS),
    "github.answered": _optional("summary", LONG_CHARS),
    "github.base_merged": _optional("summary", LONG_CHARS),
    "github.tests_draft": _optional(),
    "github.pull_taken_up": _optional("url login"),
    "github.pull_gone_on": _optional("url"),
    "github.pull_conflict": _optional("base branch"),
    "github.pull_breaks": _optional("base branch"),
    "github.pull_rejected": _optional(),
    "github.pull_closed": _optional("url learned"),
    "github.request": _optional("request"),
    "github.request_talk": _optional("talk"),
    "space.creating": _optional("", SHORT_CHARS),
    "space.on_it": _optional("what", SHORT_CHARS),
    "space.which_repo": _optional("", SHORT_CHARS),
}


VOICED: tuple[tuple[str, ...], ...] = (
    (*(key for key in FORMS if key.startswith(("fulfillment.", "space."))), "task_claim"),
    tuple(key for key in FORMS if key.startswith("github.task_")),
    tuple(key for key in FORMS if key.startswith("task_problem.")),
    tuple(key for key in FORMS if key.startswith("document_problem.")),
    (
        "github.plan_synthesized",
        "github.plan_complete",
        "github.workspace_finished",
        "github.plan_superseded",
        "github.issue_done",
        "github.issue_stale_closed",
        "github.issue_handled_closed",
        "github.sentinel_reopened_work",
        "github.sentinel_question",
    ),
)
"""The texts whose wording follows the voice, in small groups. Headings, lists of checks and origins are fixed."""


def interpolate(template: str, values: Mapping[str, object]) -> str:
    """Return `template` with all placeholders filled that have a value, in one pass: values are not read again."""
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)


def read_phrases(raw: object) -> dict[str, str]:
    """Return the texts in the object of a file; other fields are ignored. Raises `ValueError` in words."""
    if not isinstance(raw, Mapping) or raw.get("version") != VERSION:
        raise ValueError(f"it is no JSON object of version {VERSION}")
    given, found = dict(_flat(raw)), dict[str, str]()
    for key, form in FORMS.items():
        if key in given or form.required:
            if problem := problem_of(key, given.get(key)):
                raise ValueError(problem)
            found[key] = str(given[key])
    return found


def problem_of(key: str, text: object, *, names: Iterable[str] = ()) -> str:
    """Return why this cannot be the text named `key`, or ""; it may name none of the accounts `names`."""
    problem = _problem(text, FORMS[key], names)
    return f"{key} {problem}" if problem else ""


def as_object(phrases: Mapping[str, object]) -> dict[str, object]:
    """Return the texts grouped as a file holds them."""
    grouped: dict[str, object] = {"version": VERSION}
    for key, text in phrases.items():
        group, _, name = key.rpartition(".")
        if group:
            inner = grouped.setdefault(group, {})
            assert isinstance(inner, dict)  # noqa: S101 - no key is also a group
            inner[name] = text
        else:
            grouped[name] = text
    return grouped


def _flat(raw: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for group, value in raw.items():
        if isinstance(value, Mapping):
            yield from ((f"{group}.{name}", text) for name, text in value.items())
        else:
            yield str(group), value


def _problem(text: object, form: PhraseForm, names: Iterable[str]) -> str:  # noqa: PLR0911 - one line for each reason
    if not isinstance(text, str) or not text.strip():
        return "is missing"
    if len(text) > form.most_chars:
        return f"has more than {form.most_chars} characters"
    held = set(_PLACEHOLDER.findall(text))
    if lost := sorted(form.placeholders - held):
        return f"lacks {{{{{lost[0]}}}}}"
    if more := sorted(held - form.placeholders):
        return f"has {{{{{more[0]}}}}}, which nobody fills in"
    if lost_words := [token for token in form.tokens if token not in text.lower()]:
        return f"lacks {lost_words[0]!r}, by which others know it"
    if clean(text) != text.strip():
        return "holds control characters"
    if "@" in text or _ADDRESS.search(text):
        return "names an account or an address"
    if any(name.lower() in text.lower() for name in names if name):
        return "names the SOUL's own account"
    return ""
