"""Describes the tests of a repository for people and models: how they ran, and how a change affected them. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from common.text.github_text import without_mentions
from common.text.untrusted import one_line
from modules.services.coding.suites import SuiteChange, SuiteRun
from modules.services.coding.test_output import SuiteOutcome
from modules.services.voice_phrases import Phrase

_LINE_CHARS = 200
_MOST_LISTED = 30
_MOST_NAMED = 100
_WITHOUT_RESULT: tuple[SuiteOutcome, ...] = ("missing", "empty", "timeout", "memory", "crashed")


def suite_lines(suites: SuiteChange, phrase: Phrase) -> Iterator[str]:
    """Yield what a change did to the tests and how they ran, one line each; not which suites it broke."""
    before, after = suites.before, suites.after
    passed = "github.tests_passed" if after.declared else "github.tests_hollow"
    without_result = {
        f"github.tests_{outcome}": [one for one in suites.without_result if one.outcome == outcome]
        for outcome in _WITHOUT_RESULT
    }
    told: dict[str, Sequence[SuiteRun]] = {
        passed: [one for one in after.runs if one.passed],
        "github.tests_still_failing": suites.still_failing,
        "github.tests_unnamed": suites.still_unnamed,
        **without_result,
    }
    yield from (phrase(key, commands=command_names(runs)) for key, runs in told.items() if runs)
    if suites.mended:
        yield phrase("github.tests_mended", tests=quoted(suites.mended))
    if not after.runs:
        yield phrase("github.tests_refused" if after.definitions else "github.tests_none")
    if before.lacks:
        yield phrase("github.not_installed", reason=without_mentions(one_line(before.lacks, _LINE_CHARS)))
    if before.declared or after.declared:
        counts = {"added": len(suites.added), "removed": len(suites.removed), "total": len(after.declared)}
        yield phrase("github.tests_counted", **counts)
    if suites.removed:
        yield phrase("github.tests_removed", tests=quoted(suites.removed))
    if suites.weaker:
        yield phrase("github.tests_weaker", files=quoted(suites.weaker))
    commands = {
        "github.tests_command_new": suites.new_commands,
        "github.tests_command_changed": suites.changed_commands,
    }
    yield from (phrase(key, commands=", ".join(names)) for key, names in commands.items() if names)
    if after.definitions and not any(commands.values()):
        yield phrase("github.tests_command_kept")


def command_names(runs: Iterable[SuiteRun]) -> str:
    """Return the commands of the runs, separated by commas."""
    return ", ".join(one.command for one in runs)


def outcomes(runs: Iterable[SuiteRun]) -> str:
    """Return the commands and outcomes of the runs in one line, for a model."""
    return ", ".join(f"{one.command} ({one.outcome})" for one in runs)


def printed(runs: Iterable[SuiteRun]) -> str:
    """Return the output of each run below its command and outcome, for a model."""
    return "\n\n".join(f"{one.command} ({one.outcome})\n{one.output}" for one in runs)


def failures(runs: Iterable[SuiteRun]) -> str:
    """Return the failing tests of each run, for a model: their names, or the output of a run that names none."""
    return "\n\n".join(
        f"{one.command} ({one.outcome}), {len(one.failing)} of its tests:\n{_names(one)}"
        if one.failing
        else printed([one])
        for one in runs
    )


def _names(run: SuiteRun) -> str:
    names = [one_line(name, _LINE_CHARS) for name in sorted(run.failing)]
    more = [f"… and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return "\n".join([*names[:_MOST_NAMED], *more])


def quoted(names: Sequence[str]) -> str:
    """Return untrusted names as inline code of Markdown, with nothing in them that could end the code."""
    told = [f"`{without_mentions(one_line(one, _LINE_CHARS)).replace('`', '')}`" for one in names[:_MOST_LISTED]]
    return ", ".join([*told, *(["…"] if len(names) > _MOST_LISTED else [])])
