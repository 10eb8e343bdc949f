"""Measures how fast a SOUL saves memories, and finds them again.

Usage: `python bench/memory_search.py [--size 100000] [--rounds 300]`

The corpus is generated from a fixed seed: words as frequent as in real language (Zipf), two years of entries of every
kind, one in ten private, a handful of a rare kind.

The exit code is 1 if the p95 of a class of searches or of all, or the p99 of a save, passes its limit. A search is
judged by the processor time of this process, which does all of its work, so that other load on the machine does not
matter.
"""

import argparse
import asyncio
import itertools
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.memory.admission import Kind, NewMemory, Query
from modules.services.memory.rows import MemoryStore

NOW = datetime(2026, 1, 5, tzinfo=UTC)
SPAN = timedelta(days=720)
VOCABULARY = 60_000
ZIPF = 1.05
BATCH = 1000
RARE_ONE_IN = 20_000
OWNERS_SHARE = 0.1
KINDS: tuple[Kind, ...] = ("fact", "fact", "fact", "preference", "person", "lesson", "decision", "episode", "daily")
RARE: tuple[Kind, ...] = ("protocol",)
PRIVATE: tuple[Kind, ...] = ("preference",)
NEAR_SIZE = 100_000
NEAR_P95_S, FAR_P95_S, SAVE_P99_S = 0.010, 0.050, 0.005
Shape = Callable[["Language"], Query]


class Language:
    """Words by how common they are: number 0 is in almost every entry, most are in a few."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
        self.words = ["".join(parts) for size in (2, 3) for parts in itertools.product(syllables, repeat=size)]
        rng.shuffle(self.words)
        del self.words[VOCABULARY:]
        self._odds = list(itertools.accumulate((rank + 1) ** -ZIPF for rank in range(VOCABULARY)))

    def say(self, least: int, most: int) -> str:
        return " ".join(self.rng.choices(self.words, cum_weights=self._odds, k=self.rng.randint(least, most)))

    def pick(self, first: int, last: int, count: int) -> list[str]:
        """Return words whose rank by frequency is in this range."""
        return self.rng.sample(self.words[first:last], count)


def _memory(language: Language, number: int) -> NewMemory:
    rng = language.rng
    return NewMemory(
        kind="protocol" if number % RARE_ONE_IN == 0 else rng.choice(KINDS),
        subject=f"{language.say(2, 4)} {number}",
        body=language.say(8, 45),
        tags=tuple(language.say(1, 2).split()),
        importance=rng.randint(1, 5),
        source="owner:terminal" if rng.random() < OWNERS_SHARE else "self",
    )


SHAPES: dict[str, Shape] = {
    "one rare word": lambda words: Query(" ".join(words.pick(5_000, 60_000, 1))),
    "rare words": lambda words: Query(" ".join(words.pick(5_000, 60_000, 4))),
    "a sentence": lambda words: Query(words.say(6, 14)),
    "a whole post": lambda words: Query(words.say(30, 50)),
    "middling words": lambda words: Query(" ".join(words.pick(100, 1000, 3))),
    "the commonest words": lambda words: Query(" ".join(words.pick(0, 12, 5))),
    "one common word": lambda words: Query(" ".join(words.pick(0, 50, 1))),
    "a word begun": lambda words: Query(" ".join([*words.pick(0, 20, 2), words.pick(0, 60_000, 1)[0][:3]])),
    "one letter": lambda words: Query(words.words[words.rng.randrange(500)][:1]),
    "nonsense": lambda words: Query(" ".join(word[::-1] + "xq" for word in words.pick(0, 60_000, 3)) + ' "*" OR NEAR('),
    "no words": lambda _: Query("?!"),
    "a rare kind": lambda words: Query(" ".join(words.pick(0, 50, 3)), kinds=RARE),
    "two kinds, public": lambda words: Query(words.say(6, 14), kinds=("lesson", "person"), public_only=True),
    "of the last month": lambda words: Query(" ".join(words.pick(0, 300, 4)), since=NOW - timedelta(days=30)),
    "private kind, public": lambda words: Query(" ".join(words.pick(0, 50, 3)), kinds=PRIVATE, public_only=True),
}


@asynccontextmanager
async def _opened() -> AsyncIterator[MemoryStore]:
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(Path(folder) / "soul.db", MIGRATIONS)
        try:
            yield MemoryStore(database)
        finally:
            await database.close()


async def _fill(store: MemoryStore, language: Language, size: int) -> None:
    started = time.perf_counter()
    for first in range(0, size, BATCH):
        when = NOW - SPAN * (1 - first / size)
        await store.save_all([_memory(language, first + step) for step in range(min(BATCH, size - first))], when)
    took = time.perf_counter() - started
    _say(f"{size} entries kept in {took:.0f} s ({size / took:.0f} per second, in batches of {BATCH})")


async def _measure(store: MemoryStore, language: Language, size: int, rounds: int) -> list[str]:
    """Print the table, and return the names of what passed its limit."""
    slow: list[str] = []
    limit = LatencyLimit("p95", 0.95, NEAR_P95_S if size <= NEAR_SIZE else FAR_P95_S)
    _say(f"{'':24}{'processor':>18}   {'until the answer':>36}")
    _say(f"{'':24}{'p50':>9}{'p95':>9}   {'p50':>9}{'p95':>9}{'p99':>9}{'worst':>9}  ms   limit         found")
    everything = Times([], [])

    def judge(name: str, times: Times, found: float) -> None:
        judged = times.processor
        slow.extend([name] if limit.passed(judged) else [])
        processor = _figures(times.processor, 0.5, 0.95)
        _say(f"{name:24}{processor}   {_figures(times.waited)}       {limit.judged(judged):14}{found:.1f}")

    found_by_all = 0
    for name, shape in SHAPES.items():
        times, found = Times([], []), 0
        for _ in range(rounds):
            query = shape(language)
            began, spent = time.perf_counter(), time.process_time()
            found += len(await store.search(query, NOW))
            times.waited.append(time.perf_counter() - began)
            times.processor.append(time.process_time() - spent)
        everything.waited.extend(times.waited)
        everything.processor.extend(times.processor)
        found_by_all += found
        judge(name, times, found / rounds)
    judge("all searches", everything, found_by_all / rounds / len(SHAPES))
    for name, batch, limits in (("save", 1, [LatencyLimit("p99", 0.99, SAVE_P99_S)]), ("save ten at once", 10, [])):
        waited = []
        for step in range(rounds):
            new = [_memory(language, size + step * batch + one) for one in range(batch)]
            started = time.perf_counter()
            await store.save_all(new, NOW)
            waited.append(time.perf_counter() - started)
        size += rounds * batch
        slow += [name for limit in limits if limit.passed(waited)]
        verdict = " ".join(limit.judged(waited) for limit in limits)
        _say(f"{name:24}{'':18}   {_figures(waited)}       {verdict}".rstrip())
    started = time.perf_counter()
    _say(f"{await store.count()} living entries, counted in {(time.perf_counter() - started) * 1000:.1f} ms")
    return slow


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """The maximum of seconds for this share of the times."""

    name: str
    share: float
    seconds: float

    def passed(self, times: Sequence[float]) -> bool:
        return next(_at(sorted(times), self.share)) > self.seconds

    def judged(self, times: Sequence[float]) -> str:
        return f"{self.name} {self.seconds * 1000:g} {'SLOW' if self.passed(times) else 'ok'}"


@dataclass(frozen=True, slots=True)
class Times:
    """The times of searches, in seconds: processor time of this process, and elapsed time until the answer."""

    processor: list[float]
    waited: list[float]


def _figures(times: Sequence[float], *shares: float) -> str:
    ordered = sorted(times)
    return "".join(f"{value * 1000:9.2f}" for value in _at(ordered, *(shares or (0.5, 0.95, 0.99, 1))))


def _at(ordered: Sequence[float], *shares: float) -> Iterator[float]:
    for share in shares:
        yield ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> int:
    """Fill a store and measure it; return the exit code, 1 if something was too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="how many entries")
    parser.add_argument("--rounds", type=int, default=300, help="how many searches of each class, and saves")
    arguments = parser.parse_args()
    language = Language(random.Random(7))
    async with _opened() as store:
        await _fill(store, language, arguments.size)
        slow = await _measure(store, language, arguments.size, arguments.rounds)
    _say(f"Too slow: {', '.join(slow)}" if slow else "Fast enough")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
