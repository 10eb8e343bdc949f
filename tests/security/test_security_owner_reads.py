"""Proves that the owner's commands are answered over broken state files: no traceback, and one clear line if refused.

`OWNER_READS` says how many broken homes are looked at (60 in `make test-security`); each has a seed of its own, counted
from `OWNER_READS_FIRST`.
"""

import asyncio
import contextlib
import io
import json
import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from modules.runtime.home import Home
from soul import cli
from tests.security.hostile_home import POST, hostile_home, hostile_service
from tests.security.state_corruptions import CORRUPTIONS, huge

COUNT = int(os.environ.get("OWNER_READS", "20"))
FIRST = int(os.environ.get("OWNER_READS_FIRST", "0"))
READS: tuple[tuple[str, ...], ...] = (
    ("status",), ("why", POST), ("drafts",), ("memory", "list"), ("self", "log"), ("self", "diff"),
    ("budget",), ("talks",),
)  # fmt: skip
_JSON = {"status", "why", "drafts", "memory", "budget", "talks"}
_ODD: tuple[Any, ...] = (
    None, True, -1, 5, 1e308, 10**30, "x", "9" * 5000, "\ud800", [], [1], [None], {}, {"a": 1}, [[[[]]]],
    "2026-13-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
)  # fmt: skip
_DEEP = 3_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with hostile_service() as service:
        yield asyncio.run(hostile_home(tmp_path_factory.mktemp("homes") / "rowan", service))


@contextlib.contextmanager
def kept(home: Home) -> Iterator[None]:
    """Restore every file of the memory folder after the block."""
    before = {path: path.read_bytes() for path in home.memory.rglob("*") if path.is_file()}
    try:
        yield
    finally:
        for path in home.memory.rglob("*"):
            if path.is_file() and path not in before:
                path.unlink()
        for path, content in before.items():
            if path.is_dir():
                path.rmdir()
            path.write_bytes(content)


def problem(home: Home, *arguments: str) -> str:
    """Return what is wrong with the answer to a command, "" if nothing."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([*arguments, "--home", str(home.root)])
    said = err.getvalue().splitlines()
    if any(line.startswith("Traceback") for line in said):
        return f"{' '.join(arguments)}: {said[-1]}"
    told = [line for line in said if line.startswith("✗")]
    if code not in {0, 1, 2, 78} or (code != 0 and "--json" not in arguments and len(told) != 1):
        return f"{' '.join(arguments)}: exit code {code}, {said}"
    return ""


def problems(home: Home, reads: Sequence[tuple[str, ...]] = READS) -> list[str]:
    """Return what is wrong with the answers to these commands, as lines and as JSON."""
    asked = [*reads, *((*read, "--json") for read in reads if read[0] in _JSON)]
    return [wrong for read in asked if (wrong := problem(home, *read))]


def changed(value: Any, rng: random.Random) -> Any:
    """Return `value` with one thing in it, at any depth, that does not belong there."""
    places = list(_places(value))
    return _with(value, rng.choice(places), rng.choice(_ODD))


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*at, key))


def _with(value: Any, at: tuple[Any, ...], odd: Any) -> Any:
    if not at:
        return odd
    if isinstance(value, dict):
        return {**value, at[0]: _with(value[at[0]], at[1:], odd)}
    return [*value[: at[0]], _with(value[at[0]], at[1:], odd), *value[at[0] + 1 :]]


@pytest.mark.parametrize(
    "change",
    [
        {"promptNotes": [None]}, {"updatedAt": 5}, {"counts": None}, {"waits": {"acts": "9"}}, {"lastDecision": "x"},
        {"commitments": [True]}, {"room": []}, {"mode": []}, {"loops": [1]}, {"cachedShare": "x"}, {"handle": {}},
        {"updatedAt": "9999-12-31T23:59:59-12:00"}, {"updatedAt": "0001-01-01T00:00:00+12:00"}, {"waits": []},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_in_the_status_file_is_left_out_and_named(home: Home, change: dict[str, Any]) -> None:
    with kept(home):
        home.status.write_text(json.dumps(json.loads(home.status.read_text()) | change))
        assert problems(home, [("status",)]) == []
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert cli.run(["status", "--home", str(home.root)]) == 0
    (name,) = change
    is_time = isinstance(change[name], str) and name == "updatedAt"
    assert [line for line in out.getvalue().splitlines() if "left out" in line and name in line] or is_time


def test_a_status_file_deeper_than_what_writes_json_goes_is_answered(home: Home) -> None:
    with kept(home):
        home.status.write_text('{"counts": {}, "other": ' + "[" * _DEEP + "]" * _DEEP + "}")
        assert problems(home, [("status",)]) == []


@pytest.mark.parametrize("at", [None, 5, {}, "x"], ids=repr)
def test_a_version_whose_time_is_none_is_told_as_one_of_which_nothing_is_known(home: Home, at: object) -> None:
    path = min((home.memory / "self-history").glob("*.json"))
    with kept(home):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"at": at}))
        assert problems(home, [("self", "log"), ("self", "diff")]) == []
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert cli.run(["self", "log", "--home", str(home.root)]) == 0
    assert "nothing is known about it" in out.getvalue()


@pytest.mark.parametrize("change", [{"content": "\ud800"}, {"at": 5}, {"at": "x"}, {"cites": None}], ids=str)
def test_a_change_that_waits_and_cannot_be_read_is_set_aside_and_told(home: Home, change: dict[str, Any]) -> None:
    path = home.memory / "self-held.json"
    for asked in (("drafts", "show", "SELF.md"), ("drafts", "approve", "SELF.md"), ("self", "diff")):
        with kept(home):
            path.write_text(json.dumps(json.loads(path.read_text()) | change))
            assert problems(home, [asked]) == []


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_no_wrong_value_in_any_state_file_makes_a_command_that_only_reads_fail_in_a_traceback(home: Home) -> None:
    files = sorted(home.memory.rglob("*.json"))
    assert {"status.json", "self-held.json"} < {path.name for path in files}
    failed = []
    for seed in range(FIRST, FIRST + COUNT):
        rng = random.Random(seed)
        path = home.status if seed % 2 else rng.choice(files)
        with kept(home):
            value = changed(json.loads(path.read_text()), rng)
            path.write_text(json.dumps(value))
            reads = READS[:1] if path == home.status else READS
            failed += [f"seed {seed}: {path.name}: {wrong}" for wrong in problems(home, reads)]
    assert failed == [], "\n".join(failed)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_no_broken_state_file_makes_a_command_that_only_reads_fail_in_a_traceback(home: Home) -> None:
    failed = []
    files = sorted(path for path in home.memory.rglob("*") if path.is_file() and "soul.db" not in path.name)
    for number, path in enumerate(files):
        corrupt = [one for one in CORRUPTIONS if one is not huge][number % (len(CORRUPTIONS) - 1)]
        with kept(home):
            corrupt(path, random.Random(number))
            failed += [f"{path.name} {corrupt.__name__}: {wrong}" for wrong in problems(home)]
    assert failed == [], "\n".join(failed)
