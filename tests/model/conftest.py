"""A real small model on loopback, served by a child process for the whole run."""

import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from common.clock import SystemClock
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from tests.loopback import to_loopback
from tests.model.get_model import DEFAULT_FOLDER, DEFAULT_MODEL, MODELS, server_python

START_DEADLINE_S = 120
CONTEXT_TOKENS = 12_288
MODEL = os.environ.get("SOUL_TEST_MODEL") or DEFAULT_MODEL


@pytest.fixture(scope="session")
def real_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the base URL of the running service."""
    weights, python = DEFAULT_FOLDER / MODELS[MODEL].file, server_python(DEFAULT_FOLDER)
    if not (weights.exists() and python.exists()):
        pytest.fail(f"no model in {DEFAULT_FOLDER}: run python tests/model/get_model.py")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("model") / "server.log"
    script = Path(__file__).with_name("serve.py")
    command = [str(python), str(script), str(weights), str(port), str(CONTEXT_TOKENS)]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait_until_ready(process, log, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path, port: int) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the model did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture
async def gateway(real_model: str) -> AsyncIterator[LLMGateway]:
    opened = LLMGateway(
        budget_guard=NoBudgetGuard(),
        transport=to_loopback,
        base_url=real_model,
        api_key="none-needed",
        model=MODEL,
        clock=SystemClock(),
        rng=Random(7),
        console=SilentConsole(),
    )
    yield opened
    await opened.aclose()
