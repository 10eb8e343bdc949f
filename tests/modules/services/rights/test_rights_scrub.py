"""What is left of a file when nothing in it may name a person, by the shape of the file."""

from __future__ import annotations

import gzip
import json

import pytest

from common.person import Person, Trace
from modules.services.rights.scrub import scrubbed

TRACE = Trace(
    Person("did:plc:quillon", ("quillon.test",), ("Quillon of the Weir", "Ann")),
    words=frozenset({"The seventh weir hums at night."}),
)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.log", "one\ntwo @quillon.test\nthree\n", "one\nthree\n"),
        ("log.jsonl.1", '{"a": 1}\n{"did": "did:plc:quillon"}\n', '{"a": 1}\n'),
        (
            "MEMORY.md",
            "# All\n\n## A\nfine\n\n## B\nby Quillon of the Weir\n\n## C\nfine\n",
            "# All\n\n## A\nfine\n\n## C\nfine\n",
        ),
        ("escaped.jsonl", '{"a": "so\\nquillon.test"}\n{"a": "\\u2019quillon of the weir"}\n{}\n', "{}\n"),
        ("end.log", "so says quillon.test.Then\n", ""),
        ("day.md", "## A\nfine\n## B\nThe seventh weir hums at night.\n", "## A\nfine\n"),
        ("near.log", "quillon.tester and Ann and my.quillon.test\n", "quillon.tester and Ann and my.quillon.test\n"),
        ("link.log", "https://bsky.app/profile/quillon.test/post/1\n", ""),
        ("key.log", "media/bluesky~3Athread~3Aat~3A~2F~2Fdid~3Aplc~3Aquillon/x.jpg\n", ""),
    ],
)
def test_lines_and_sections_that_name_a_person_go(name: str, before: str, after: str) -> None:
    assert scrubbed(name, before.encode(), TRACE) == after.encode()


def test_entries_of_a_state_file_go_and_the_others_stay_as_they_are() -> None:
    state = {
        "seenAt": "2026-01-05",
        "last": "quillon.test",
        "relationships": {"sam.test": {"n": 1}, "quillon.test": {"n": 2}, "kit.test": {"friend": ["did:plc:quillon"]}},
        "list": ["sam", {"by": "@quillon.test"}],
    }
    after = scrubbed("state.json", json.dumps(state).encode(), TRACE)
    assert after is not None
    assert json.loads(after) == {"seenAt": "2026-01-05", "relationships": {"sam.test": {"n": 1}}, "list": ["sam"]}


def test_packed_lines_are_packed_again() -> None:
    after = scrubbed("a.jsonl.gz", gzip.compress(b'{"a": 1}\n{"b": "@quillon.test"}\n', mtime=0), TRACE)
    assert after is not None
    assert gzip.decompress(after) == b'{"a": 1}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("soul.db.corrupt-1", b"\x00\xff quillon.test"),
        ("torn.json", b'{"a": "quillon.test'),
        ("quillon.test.md", b"nothing"),
        ("torn.jsonl.gz", gzip.compress(b"quillon.test" * 100, mtime=0)[:-9]),
    ],
)
def test_what_cannot_be_read_goes_whole(name: str, content: bytes) -> None:
    assert scrubbed(name, content, TRACE) is None
