"""Faults: each one as a client meets it, and how they are armed, aimed and used up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from common.clock import iso
from tests.patience import until
from tests.town.running import Town
from town.atproto.index import POST
from town.atproto.service import AtprotoFaults, Fault

Member = Callable[[str], str]
CREATE = "com.atproto.repo.createRecord"
DESCRIBE = "com.atproto.server.describeServer"


def body(town: Town, did: str) -> dict[str, object]:
    record = {"text": "hello", "createdAt": iso(town.clock.now())}
    return {"repo": did, "collection": POST, "record": record}


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (Fault("server_error"), 500, "InternalServerError"),
        (Fault("rate_limited", seconds=17), 429, "RateLimitExceeded"),
    ],
)
async def test_a_fault_answers_once_in_place_of_the_method(
    town: Town, member: Member, fault: Fault, status: int, error: str
) -> None:
    did = member("mara")
    town.faults.arm(fault)
    answer = await town.post(CREATE, body(town, did), town.login(did))
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert town.network.posts() == []
    assert (await town.post(CREATE, body(town, did), town.login(did))).status_code == 200


async def test_a_hanging_answer_comes_in_its_own_time(town: Town) -> None:
    town.faults.arm(Fault("hang", seconds=60))
    waiting = asyncio.create_task(town.get(DESCRIBE))
    await until(lambda: town.clock._sleepers, what="the answer that is kept back")
    assert not waiting.done()
    await town.clock.advance(60)
    assert (await waiting).status_code == 200


async def test_faults_are_armed_listed_and_cleared_over_http(town: Town) -> None:
    url = f"{town.url}/town/faults"
    armed = await town.http.post(url, json={"kind": "server_error", "request": "com.atproto.repo.*", "times": 2})
    fault = {"kind": "server_error", "request": "com.atproto.repo.*", "times": 2, "probability": 1.0, "seconds": 30.0}
    assert armed.json() == {"armed": [fault]}
    assert (await town.get(DESCRIBE)).status_code == 200
    assert (await town.get("com.atproto.repo.describeRepo", repo="x.test")).status_code == 500
    assert (await town.http.get(url)).json() == {"armed": [{**fault, "times": 1}]}
    assert (await town.http.delete(url)).json() == {"armed": []}
    assert (await town.get("com.atproto.repo.describeRepo", repo="x.test")).status_code == 400


async def test_a_fault_that_nobody_knows_is_refused(town: Town) -> None:
    answer = await town.http.post(f"{town.url}/town/faults", json={"kind": "hang", "colour": "red"})
    assert (answer.status_code, answer.json()["error"]) == (400, "InvalidRequest")
    assert town.faults.armed == ()


def test_a_probable_fault_hits_some_and_the_same_ones_for_a_seed() -> None:
    def hits(seed: int) -> list[bool]:
        faults = AtprotoFaults(random.Random(seed))
        faults.arm(Fault("server_error", times=1000, probability=0.3))
        return [faults.meet("any.method") is not None for _ in range(100)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 15 < sum(hits(1)) < 45


def test_a_request_meets_the_oldest_fault_that_is_meant_for_it() -> None:
    faults = AtprotoFaults()
    for fault in (Fault("hang", "app.bsky.*"), Fault("server_error"), Fault("bad_gateway")):
        faults.arm(fault)
    met = [faults.meet("com.atproto.repo.putRecord") for _ in range(3)]
    assert [fault.kind if fault else None for fault in met] == ["server_error", "bad_gateway", None]
    assert [fault.kind for fault in faults.armed] == ["hang"]
