"""One S3 service for all tests of storage; each test has a store of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from adapters.storage.local import Storage
from tests.adapters.storage.s3_server import KINDS, S3, open_kind, serving_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with serving_s3() as running:
        yield running


@pytest.fixture(params=KINDS)
async def storage(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> AsyncIterator[Storage]:
    opened = open_kind(request.param, tmp_path, s3)
    yield opened
    await opened.aclose()
