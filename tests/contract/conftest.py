"""One suite for two networks: the town (always), and Bluesky's own software (with `-m network`).

Where they differ, the town is wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from anyio.from_thread import start_blocking_portal

from common.clock import SystemClock
from tests.contract.people import Person, UnderTest
from tests.network.rig import Rig
from town.atproto.network import Network
from town.atproto.service import atproto_app
from town.serving import serve

TOWN_SECRET = b"contract"


@pytest.fixture(scope="session", params=["town", pytest.param("bluesky", marks=pytest.mark.network)])
def meet(request: pytest.FixtureRequest) -> Iterator[Callable[[], UnderTest]]:
    """Yield a function that returns the running network with an address and clients that were not used before."""
    if request.param == "bluesky":
        rig = Rig.start()
        yield lambda: UnderTest(rig.pds, rig.settle, rig.jwt_secret.encode(), rig.feeds_did, rig.announce)
        Rig.stop()
        return
    app = atproto_app(Network(clock=SystemClock(), jwt_secret=TOWN_SECRET))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(app)) as url:
        yield lambda: UnderTest(url, lambda: None, TOWN_SECRET, "did:web:feeds.test", lambda _: None)


@pytest.fixture
def network_under_test(meet: Callable[[], UnderTest]) -> Iterator[UnderTest]:
    with closing(meet()) as under_test:
        yield under_test


@pytest.fixture(scope="session")
def somebody(meet: Callable[[], UnderTest]) -> Iterator[Person]:
    """Yield one account for all tests that leave nothing behind."""
    with closing(meet()) as under_test:
        yield under_test.person()


@pytest.fixture
def alice(network_under_test: UnderTest) -> Person:
    return network_under_test.person()


@pytest.fixture
def bob(network_under_test: UnderTest) -> Person:
    return network_under_test.person()


@pytest.fixture
def carol(network_under_test: UnderTest) -> Person:
    return network_under_test.person()
