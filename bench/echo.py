"""Measures how well a SOUL notices that it would only repeat the room.

Usage: `python bench/echo.py [--split dev|held-out] [--model none|local|env] [--home .] [--limit 10]`

Each pair of the corpus is a room and a message about to be sent there. The words alone raise a suspicion; with a
model the judge confirms it, and is also asked in some cases without a suspicion, as in real life. `local` serves the
small model of `make test-model` on loopback; `env` asks the service that the settings in `--home` name. If the judge
gives no answer in time, the message passes, and this is counted.

The exit code is 1 if the judge would be asked about too few of the echoes that have the words of their source, or
if words alone accuse too many others. The findings of a model are only printed, since models differ.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import httpx

from adapters.web.client import WebTransport
from common.clock import SystemClock
from common.redact import Redactor
from common.settings import load_settings
from common.text.echo import EnsembleEchoResult, find_semantic_echo_ensemble
from modules.lives.space.classifiers import ModelMessageJudge, judge_wanted
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.connection import NoBudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.verdicts import Verdicts
from modules.services.skills.skills import Skills
from tests.echo_corpus import STRATA, Pair, corpus
from tests.model.get_model import DEFAULT_FOLDER, DEFAULT_MODEL, MODELS, server_python

LEAST_ASKED, FALSE_ALARMS = 0.99, 0.02
CONTEXT_TOKENS, START_S = 4_096, 120
_LEXICAL = ("verbatim", "reordered")


@dataclass(frozen=True, slots=True)
class Seen:
    """The results for a pair: by words alone, whether the judge is asked, and in the end."""

    pair: Pair
    by_words: bool
    asked: bool
    echo: bool


def _by_words(pair: Pair) -> EnsembleEchoResult:
    return find_semantic_echo_ensemble(pair.candidate, pair.peers, pair.peers)


async def _see(pair: Pair, judge: ModelMessageJudge | None) -> Seen:
    found = _by_words(pair)
    wanted = found.is_echo or judge_wanted(pair.candidate, pair.peers, found, partners=len(pair.peers)).should
    echo = wanted and judge is not None and await judge.is_echo_by_llm_judge(pair.candidate, pair.peers)
    return Seen(pair, found.is_echo, asked=wanted, echo=echo)


def _tell(seen: Sequence[Seen], *, judged: bool) -> None:
    _say(f"{'':14}{'pairs':>7}{'words alone':>13}{'asked':>8}" + (f"{'with judge':>12}" if judged else ""))
    for stratum in STRATA:
        rows = [one for one in seen if one.pair.stratum == stratum]
        if not rows:
            continue
        line = (
            f"{stratum:14}{len(rows):7}{_share(rows, lambda one: one.by_words):13.1%}{sum(one.asked for one in rows):8}"
        )
        _say(line + (f"{_share(rows, lambda one: one.echo):12.1%}" if judged else ""))


def _share(rows: Sequence[Seen], holds: Callable[[Seen], bool]) -> float:
    return sum(map(holds, rows)) / len(rows) if rows else 0.0


def _some(pairs: Sequence[Pair], limit: int) -> Sequence[Pair]:
    """Return at most `limit` pairs, from the whole range; all for 0."""
    return pairs[:: max(1, -(-len(pairs) // limit))] if limit else pairs


@asynccontextmanager
async def _service(model: str, home: Path) -> AsyncIterator[tuple[str, str, str]]:
    """Yield address, key and name of a model."""
    if model == "env":
        settings = load_settings(home)
        yield (
            str(settings.ai_gateway_base_url),
            settings.ai_gateway_api_key.get_secret_value(),
            settings.ai_gateway_model,
        )
        return
    weights = DEFAULT_FOLDER / MODELS[DEFAULT_MODEL].file
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [str(server_python(DEFAULT_FOLDER)), str(ROOT / "tests/model/serve.py"), str(weights), str(port)]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, str(CONTEXT_TOKENS), stdout=quiet, stderr=quiet)
    try:
        await _until_ready(process, f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1", "none-needed", DEFAULT_MODEL
    finally:
        process.terminate()
        await process.wait()


async def _until_ready(process: asyncio.subprocess.Process, url: str) -> None:
    async with httpx.AsyncClient(timeout=2) as client:
        for _ in range(START_S * 5):
            if process.returncode is not None:
                break
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)
    raise SystemExit("the model did not start: run python tests/model/get_model.py")


@asynccontextmanager
async def _judge(
    model: str, home: Path, timeout_s: float
) -> AsyncIterator[tuple[ModelMessageJudge | None, Journal | None]]:
    if model == "none":
        yield None, None
        return
    skills, clock, console = Skills.load(ROOT / "skills"), SystemClock(), SilentConsole()
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(Path(folder) / "soul.db", MIGRATIONS)
        try:
            async with _service(model, home) as (url, key, name):
                gateway = LLMGateway(
                    base_url=url,
                    api_key=key,
                    model=name,
                    clock=clock,
                    rng=random.Random(7),
                    console=console,
                    budget_guard=NoBudgetGuard(),
                    transport=lambda: WebTransport(private_ok=True),
                )
                verdicts = Verdicts(gateway, skills, clock, timeout_s=timeout_s)
                journal = Journal(database, console, clock, Redactor())
                yield ModelMessageJudge(verdicts, journal), journal
                await gateway.aclose()
        finally:
            await database.close()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", choices=("dev", "held-out"), default="held-out")
    parser.add_argument("--model", choices=("none", "local", "env"), default="none")
    parser.add_argument("--home", type=Path, default=Path(), help="whose settings name the service")
    parser.add_argument("--limit", type=int, default=0, help="how many pairs of each stratum; 0 for all")
    parser.add_argument("--timeout", type=float, default=120.0, help="how long a message may be judged, in seconds")
    arguments = parser.parse_args()
    pairs = [
        pair
        for stratum in STRATA
        for pair in _some([one for one in corpus(arguments.split) if one.stratum == stratum], arguments.limit)
    ]
    async with _judge(arguments.model, arguments.home, arguments.timeout) as (judge, journal):
        started = time.perf_counter()
        seen = [await _see(pair, judge) for pair in pairs]
        took = time.perf_counter() - started
        failed = len(await journal.recent(len(pairs), {"error"})) if journal else 0
    _tell(seen, judged=judge is not None)
    if judge is not None:
        asked = sum(one.asked for one in seen)
        _say(f"the judge was asked {asked} times, {took / max(asked, 1):.1f} s each, and gave no answer {failed} times")
    asked_of = _share([one for one in seen if one.pair.stratum in _LEXICAL], lambda one: one.asked)
    alarms = _share([one for one in seen if not one.pair.is_echo], lambda one: one.by_words)
    _say(
        f"the judge is asked about {asked_of:.1%} of the lexical echoes; words alone accuse {alarms:.1%} of the others"
    )
    return int(asked_of < LEAST_ASKED or alarms > FALSE_ALARMS)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
