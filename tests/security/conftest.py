"""Fixtures: a host to attack, and a small internet to fetch from.

Without bubblewrap the tests of the sandbox are skipped; with SOUL_NEED_SANDBOX=1 they fail.
"""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.modules.services.coding.coding_rig import why_no_sandbox
from tests.security.sandbox_host import SECRET, Host, open_host
from tests.security.small_internet import SmallInternet, open_internet


@pytest.fixture(scope="module")
def sandbox() -> None:
    why = why_no_sandbox()
    if why and os.environ.get("SOUL_NEED_SANDBOX") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)


@pytest.fixture
def host(sandbox: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("SOUL_TEST_TOKEN", SECRET)
    with open_host(tmp_path) as host:
        yield host
        assert host.unharmed()


@pytest.fixture
async def internet() -> AsyncIterator[SmallInternet]:
    async with open_internet() as internet:
        yield internet
