"""Measures what coding tasks of ten and of sixty steps send to the model, and how much of it could be cached.

Run: `python bench/coding_task.py`. Exit code 1 if the cacheable share is under 80 %.

The agent, its prompt, its tools and its sandbox are the real ones (needs bubblewrap); the answers of the model are a
script: it reads two files of some size, writes a third, changes it, and runs tests; the long task also reads ranges
of a large file. It counts the bytes of every request in the order in which services cache them (tools, system
prompt, conversation); the beginning shared with the previous request is cacheable. Four bytes count as a token.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.cached_day import common_prefix
from modules.services.coding.policy import CodingLimits
from tests.modules.runtime.llm.scripted_model import Reply
from tests.modules.services.coding.coding_rig import does, open_coding

GOAL = 0.80
_LINES = 120
_PAGE = "".join(f"def bed_{number}(beds): return beds.get({number}, 0)\n" for number in range(_LINES))
_TESTS = "".join(f"def test_bed_{number}(): assert dry.bed({number})\n" for number in range(20))
_STEPS = (
    does("list_files"),
    does("read_file", path="beds.py"),
    does("search", text="bed_7"),
    does("read_file", path="more.py"),
    does("write_file", path="dry.py", content=_PAGE[:2_000]),
    does("write_file", path="test_dry.py", content=_TESTS),
    does("run", command="python3 -c 'import dry'; cat test_dry.py"),
    does("edit_file", path="dry.py", old="def bed_7(beds)", new="def bed(beds)"),
    does("run", command="python3 -m py_compile beds.py more.py; ls"),
    does("finish", summary="The dry beds are shown."),
)
_READS = tuple(does("read_file", path="large.py", from_line=number, to_line=number + 180) for number in range(1, 51))
_LIMITS = CodingLimits(steps=100, tokens=1_500_000, usd=None, seconds=1_500)


async def requests(folder: Path, steps: Sequence[Reply]) -> list[bytes]:
    """Return the bytes of every request of the task."""
    async with open_coding(folder, cap=2 * _LIMITS.tokens) as rig:
        rig.holds(beds__py=_PAGE, more__py=_PAGE, large__py=_PAGE * 3)
        end = await rig.work(*steps, limits=_LIMITS)
        if end.code != "finished":
            sys.stderr.write(f"it ended as {end.code}: {end.text}\n")
        return [_in_order(one) for one in rig.model.requests]


def _in_order(request: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in (request["tools"], *request["messages"])).encode()


def report(sent: Sequence[bytes]) -> float:
    """Print the figures, and return the cacheable share."""
    total = sum(map(len, sent))
    share = sum(common_prefix(now, before) for before, now in pairwise(sent)) / total
    sys.stdout.write(
        f"{len(sent)} steps, {total / 4_000:.1f} k tokens of input, {100 * share:.1f} % cacheable; "
        f"first request {len(sent[0]) / 4_000:.1f} k, last {len(sent[-1]) / 4_000:.1f} k\n"
    )
    return share


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / name for name in ("short", "long")]
        for folder in folders:
            folder.mkdir()
        tasks = zip(folders, (_STEPS, (*_STEPS[:-1], *_READS, _STEPS[-1])), strict=True)
        shares = [report(asyncio.run(requests(folder, steps))) for folder, steps in tasks]
        sys.exit(0 if min(shares) >= GOAL else 1)
