"""Tests of the record on disk: it is whole after a crash at any step, and it is read from its end."""

import json
import os
from pathlib import Path

import pytest

from adapters.space.chatlog import KEPT_PARTS, ChatLog
from adapters.space.types import LogEntry
from common.errors import StorageError

AT = "2026-01-05T12:00:{:02}.000Z"


def entry(number: int, content: str = "") -> LogEntry:
    return LogEntry(AT.format(number % 60), "ada", "ada-1", "chat", content or f"entry {number}")


def contents(log: ChatLog, limit: int = 200) -> list[str]:
    return [kept.content for kept in log.get_recent_history(limit)]


def all_kept(folder: Path) -> list[int]:
    """Return the numbers of all entries in all parts, oldest part first."""
    data = folder / "data"
    parts = [data / f"chat.{number}.jsonl" for number in range(KEPT_PARTS, 0, -1)] + [data / "chat.jsonl"]
    lines = [line for part in parts if part.exists() for line in part.read_text().splitlines()]
    return [int(json.loads(line)["content"].split()[1]) for line in lines]


def test_an_entry_is_one_compact_line_that_only_the_owner_reads(tmp_path: Path) -> None:
    log = ChatLog(tmp_path)
    log.append(LogEntry(AT.format(1), "ada", "ada-1", "chat", "Grüße\n你好"))
    log.close()
    assert log.path.read_text() == (
        '{"timestamp":"2026-01-05T12:00:01.000Z","agentName":"ada","agentId":"ada-1","type":"chat",'
        '"content":"Grüße\\n你好"}\n'
    )
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_no_record_yet_is_an_empty_one(tmp_path: Path) -> None:
    assert contents(ChatLog(tmp_path)) == []
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("limit", [0, 7, 500])
def test_the_last_entries_come_oldest_first(tmp_path: Path, limit: int) -> None:
    log = ChatLog(tmp_path)
    for number in range(100):
        log.append(entry(number))
    assert contents(log, limit) == [f"entry {number}" for number in range(max(0, 100 - limit), 100)]
    log.close()


def test_long_lines_of_wide_signs_are_put_together_over_the_seams_of_reading(tmp_path: Path) -> None:
    log = ChatLog(tmp_path)
    for number, size in enumerate([1, 40_000, 3, 30_000, 65_536, 5]):
        log.append(entry(number, "你" * size))
    assert [len(kept.content) for kept in log.get_recent_history()] == [1, 40_000, 3, 30_000, 65_536, 5]
    assert {sign for kept in log.get_recent_history() for sign in kept.content} == {"你"}
    log.close()


def test_lines_that_cannot_be_read_take_no_place_of_others(tmp_path: Path) -> None:
    log = ChatLog(tmp_path)
    log.append(entry(1))
    log.close()
    with log.path.open("ab") as file:
        file.write(b'\n\n{"half\n\xff\xfe\n[1]\n' + b"[" * 50_000 + b"\n")
    log.append(entry(2))
    log.close()
    assert contents(log) == ["entry 1", "entry 2"]
    assert contents(log, 2) == ["entry 1", "entry 2"]
    with log.path.open("ab") as file:
        file.write(b"?\n" * 2_000)
    assert contents(log, 2) == []


def odd_lines() -> list[str]:
    """Return lines that no sound room writes; an entry can still be found in all but the first three."""
    sound = json.loads(json.dumps({"timestamp": AT.format(1), "agentName": "eve", "agentId": "e", "type": "chat"}))
    deep = "[" * 5_000 + "]" * 5_000
    return [
        "[" * 100_000,
        json.dumps({**sound, "content": "w" * 1_100_000}),
        json.dumps({**sound, "type": ["chat"]}),
        json.dumps({**sound, "content": "deep"})[:-1] + f',"extra":{deep}}}',
        json.dumps({**sound, "content": "half \ud800"}),
        json.dumps({**sound, "content": "digits"})[:-1] + f',"extra":{"9" * 10_000}}}',
    ]


def test_an_odd_line_costs_itself_only(tmp_path: Path) -> None:
    log = ChatLog(tmp_path)
    for number, line in enumerate(odd_lines()):
        log.append(entry(number))
        with log.path.open("a") as file:
            file.write(f"{line}\n")
    kept = contents(log)
    assert [content for content in kept if content.startswith("entry")] == [f"entry {number}" for number in range(6)]
    assert [content for content in kept if not content.startswith("entry")] == ["deep", "half \ufffd", "digits"]


def test_a_torn_last_line_does_not_swallow_the_next_entry(tmp_path: Path) -> None:
    log = ChatLog(tmp_path)
    log.append(entry(1))
    log.append(entry(2))
    log.close()
    os.truncate(log.path, log.path.stat().st_size - 9)
    again = ChatLog(tmp_path)
    again.append(entry(3))
    again.close()
    assert contents(again) == ["entry 1", "entry 3"]


def test_a_full_part_is_put_aside_and_five_are_kept(tmp_path: Path) -> None:
    log = ChatLog(tmp_path, max_bytes=600)
    for number in range(100):
        log.append(entry(number))
    log.close()
    kept = all_kept(tmp_path)
    assert kept == list(range(kept[0], 100))
    parts = {f"chat.{number}.jsonl" for number in range(1, 6)}
    assert parts <= {path.name for path in (tmp_path / "data").iterdir()} <= parts | {"chat.jsonl"}


def test_what_the_last_part_held_is_read_too(tmp_path: Path) -> None:
    log = ChatLog(tmp_path, max_bytes=600)
    for number in range(8):
        log.append(entry(number))
    assert (tmp_path / "data" / "chat.1.jsonl").exists()
    assert contents(log) == [f"entry {number}" for number in range(8)]
    log.close()


class Cut(Exception):
    """Stands for the end of the process."""


class CutLog(ChatLog):
    """A record whose process is killed before the rename that follows the next `left` ones."""

    left = 99

    def _move(self, source: Path, target: Path) -> None:
        if self.left == 0:
            raise Cut
        self.left -= 1
        super()._move(source, target)


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("parts", [0, 5])
def test_a_rotation_killed_at_any_step_is_finished_by_the_next_start(tmp_path: Path, step: int, parts: int) -> None:
    log = ChatLog(tmp_path, max_bytes=600)
    number = 0
    while sum(1 for _ in (tmp_path / "data").glob("chat.?.jsonl")) < parts or number == 0:
        log.append(entry(number))
        number += 1
    log.close()
    before = all_kept(tmp_path)
    killed = CutLog(tmp_path, max_bytes=1)
    killed.left = step
    try:
        killed.append(entry(number))
    except Cut:
        pass
    else:
        assert step > parts
    killed.close()
    again = ChatLog(tmp_path)
    again.append(entry(number + 1))
    again.close()
    kept = all_kept(tmp_path)
    assert kept == list(range(kept[0], number + 2))
    assert kept[0] == 0 or parts == KEPT_PARTS
    assert len(before) + 2 - len(kept) <= 7
    assert not (tmp_path / "data" / "chat.rotating.jsonl").exists()
    assert contents(again)[-1] == f"entry {number + 1}"


@pytest.mark.parametrize("in_the_way", ["data", "data/chat.jsonl"])
def test_a_record_that_cannot_be_written_is_told_before_anything_is_said(tmp_path: Path, in_the_way: str) -> None:
    if in_the_way == "data":
        (tmp_path / in_the_way).write_text("a file where the folder should be")
    else:
        (tmp_path / in_the_way).mkdir(parents=True)
    told: list[str] = []
    with pytest.raises(StorageError, match="should be") as caught:
        ChatLog(tmp_path, report=told.append).open()
    assert str(tmp_path / "data" / "chat.jsonl") in str(caught.value)
    assert caught.value.remedy
    assert told == []


def test_a_disk_that_refuses_is_reported_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    told: list[str] = []
    log = ChatLog(tmp_path, report=told.append)
    log.append(entry(1))
    assert contents(log) == []
    assert len(told) == 2
    (tmp_path / "data").unlink()
    log.append(entry(2))
    assert contents(log) == ["entry 2"]
    log.close()
