"""Simulates the network between claimants and GitHub: each request takes time, and takes effect at some point in it.

A write replaces the whole body of a plan, as on GitHub: the last write wins, whatever others wrote meanwhile. A read
may return a state that is some seconds old.
"""

import heapq
import random
from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from modules.services.claims.claiming import advance_claim, begin_claim
from modules.services.claims.policy import (
    Action,
    AssignSelf,
    Claim,
    ClaimAnswer,
    ClaimEvent,
    ClaimState,
    ClaimWait,
    CreateLock,
    DeleteLock,
    EndClaim,
    Lease,
    LineAnswer,
    LockAnswer,
    PlanRead,
    PostClaim,
    ResetLine,
    Snapshot,
    UnassignSelf,
    WriteLine,
    after_start,
    dead_holder,
    dead_locks,
    judge_lease,
    lease_of,
    release_actions,
)
from modules.services.plans.types import Expected, Plan, Task, TaskChange

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
NUMBER = 1
Answer = TypeVar("Answer")
Work = Generator[float, None, Any]
"""The steps of a claimant: each number is the pause in seconds before the next one."""


@dataclass
class Service:
    """One issue with a plan, as the service stores it."""

    plan: Plan
    assignees: list[str]
    has_locks: bool
    locks: dict[int, datetime] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    comments: int = 0

    @property
    def line(self) -> str:
        task = self.plan.task(NUMBER)
        return (task.assignee or "") if task else ""

    def copies(self) -> dict[str, Any]:
        """Return copies of the fields that change."""
        return {"assignees": [*self.assignees], "locks": {**self.locks}, "claims": [*self.claims]}

    def write(self, seen: Plan, change: TaskChange) -> None:
        """Replace the body with `seen` and the change; the service does not check what the body is by then."""
        task = next(task for task in seen.tasks if task.number == NUMBER)
        changed = replace(task, status=change.status or task.status, assignee=change.assignee or None)
        self.plan = replace(seen, tasks=tuple(changed if one is task else one for one in seen.tasks))


class Network:
    """The clock of a race, and the delay of every request in it."""

    def __init__(self, service: Service, chance: random.Random, most_s: float, stale_s: float = 0.0) -> None:
        self.service = service
        self._stale_s = stale_s
        self._states = [(0.0, replace(service, **service.copies()))]
        self._chance = chance
        self._most_s = most_s
        self._now = 0.0
        self._count = 0
        self._queue: list[tuple[float, int, Work]] = []

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self._now)

    def start(self, at_s: float, work: Work) -> None:
        self._count += 1
        heapq.heappush(self._queue, (at_s, self._count, work))

    def run(self) -> None:
        while self._queue:
            self._now, count, work = heapq.heappop(self._queue)
            try:
                pause = next(work)
            except StopIteration:
                continue
            heapq.heappush(self._queue, (self._now + pause, count, work))

    def request(self, effect: Callable[[], Answer]) -> Generator[float, None, Answer]:
        """Run `effect` at some moment between the request and its answer, and return its result."""
        took = self._chance.uniform(0, self._most_s)
        before = self._chance.uniform(0, took)
        yield before
        answer = effect()
        self._states.append((self._now, replace(self.service, **self.service.copies())))
        yield took - before
        return answer

    def read(self, seen: Callable[[Service], Answer]) -> Generator[float, None, Answer]:
        """Return what the service shows: its state at some moment of the last `stale_s` seconds."""
        return (yield from self.request(lambda: seen(self._shown())))

    def _shown(self) -> Service:
        if not self._stale_s or not self._states:
            return self.service
        moment = self._now - self._chance.uniform(0, self._stale_s)
        place = bisect_right(self._states, moment, key=lambda one: one[0])
        return self._states[max(0, place - 1)][1]


class Claimant:
    """One of our SOULs: claims the task, and checks later whether it still holds it."""

    def __init__(self, name: str, network: Network, *, has_locks: bool = True) -> None:
        self.name = name
        self._has_locks = has_locks and network.service.has_locks
        self.goes_on = False
        self.has_won = False
        self.lease: Lease | None = None
        self._net = network

    def claim(self) -> Work:
        state, actions = begin_claim(self.name, 7, NUMBER, (yield from self._net.read(self._snapshot)))
        while actions:
            event: ClaimEvent = ClaimWait()
            self.lease = lease_of(state, "acme", "shop", self._net.now)
            for action in actions:
                event = (yield from self._act(state, action)) or event
            if state.stage in {"won", "lost"}:
                break
            state, actions = advance_claim(state, event)
        self.goes_on = self.has_won = state.stage == "won"

        if self.goes_on:
            yield from self._begin_work(state)

    def _begin_work(self, state: ClaimState) -> Work:
        """Mark the task as in progress a minute later, unless the claim is lost by then."""
        lease = lease_of(state, "acme", "shop", self._net.now)
        yield 60.0
        snapshot = yield from self._net.read(self._snapshot)
        code = judge_lease(lease, snapshot, self._net.now)
        self.goes_on = code != "lost"
        if self.goes_on:
            expected = Expected(frozenset({"", self.name}))
            yield from self._act(state, WriteLine(TaskChange("in_progress", self.name), expected))
        self.lease = lease

    def sweep_and_claim(self) -> Work:
        """Release the task of a dead SOUL, delete its locks, and claim: the order of every round."""
        snapshot = yield from self._net.read(self._snapshot)
        state = ClaimState(self.name, 7, NUMBER, self._net.now)
        if holder := dead_holder(snapshot, NUMBER):
            yield from self._act(state, ResetLine(TaskChange("pending", ""), Expected(frozenset({holder}))))
        for epoch in dead_locks(snapshot, NUMBER):
            yield from self._act(state, DeleteLock(epoch))
        yield from self.claim()

    def undo(self) -> Work:
        """Undo an unfinished claim, as after a kill and a restart: all that is left is the stored lease."""
        if self.lease:
            found = after_start(self.lease, self._net.now)
            for action in release_actions(found, status="pending", busy=False) if found.stage == "ending" else []:
                yield from self._act(ClaimState(self.name, 7, NUMBER, self._net.now), action)

    def look_again(self) -> Work:
        """Check the claim, as a holder does every five minutes and before it opens a pull request."""
        if self.goes_on and self.lease:
            snapshot = yield from self._net.read(self._snapshot)
            self.goes_on = judge_lease(self.lease, snapshot, self._net.now) in {"keep", "renew"}

    def _act(  # noqa: C901 - one case for each action
        self, state: ClaimState, action: Action
    ) -> Generator[float, None, ClaimEvent | None]:
        service, net = self._net.service, self._net
        match action:
            case ClaimWait(seconds=seconds):
                yield seconds
            case PlanRead():
                return PlanRead((yield from net.read(self._snapshot)))
            case CreateLock(epoch=epoch):
                return LockAnswer((yield from net.request(lambda: self._create(epoch))))
            case AssignSelf():
                yield from net.request(lambda: service.assignees.append(self.name))
            case UnassignSelf():
                yield from net.request(lambda: _remove(service.assignees, self.name))
            case WriteLine(change=change, expected=expected) | ResetLine(change=change, expected=expected):
                began = net.now
                seen = yield from net.read(lambda shown: shown.plan)
                task = seen.task(NUMBER)
                names = {one.lower() for one in expected.assignees or ()}
                if task is None or (task.assignee or "").lower() not in names:
                    return LineAnswer("conflict")
                yield from net.request(lambda: service.write(seen, change))
                return LineAnswer("written", (net.now - began).total_seconds())
            case PostClaim(claim=claim):
                return ClaimAnswer((yield from net.request(lambda: self._comment(claim))))
            case EndClaim(comment_id=comment_id):
                yield from net.request(lambda: self._end(comment_id))
            case DeleteLock(epoch=epoch):
                yield from net.request(lambda: service.locks.pop(epoch, None))
        return None

    def _snapshot(self, service: Service) -> Snapshot:
        locks: Mapping[int, datetime] | None = dict(service.locks) if self._has_locks else None
        epoch = max((claim.epoch for claim in service.claims), default=0)
        return Snapshot(self._net.now, service.plan, tuple(service.assignees), locks, tuple(service.claims), epoch)

    def _create(self, epoch: int) -> Any:
        if epoch in self._net.service.locks:
            return "exists"
        self._net.service.locks[epoch] = self._net.now
        return "created"

    def _comment(self, claim: Claim) -> int:
        self._net.service.comments += 1
        self._net.service.claims.append(replace(claim, comment_id=self._net.service.comments))
        return self._net.service.comments

    def _end(self, comment_id: int) -> None:
        claims = self._net.service.claims
        claims[:] = [replace(one, until=START) if one.comment_id == comment_id else one for one in claims]


class OlderPeer:
    """A peer with the older protocol: it knows only the assignees of the issue, and no lock."""

    def __init__(self, name: str, network: Network) -> None:
        self.name = name
        self.goes_on = False
        self.has_won = False
        self._net = network

    def claim(self) -> Work:
        service, net = self._net.service, self._net
        if (yield from net.read(lambda shown: shown.line)):
            return
        yield from net.request(lambda: service.assignees.append(self.name))
        yield from self._write(TaskChange("claimed", self.name))
        yield 5.0
        assigned = yield from net.read(lambda shown: set(shown.assignees))
        if len(assigned) != 1:
            yield 3.0 if assigned else 5.0
            assigned = yield from net.read(lambda shown: set(shown.assignees))
        if len(assigned) > 1 and self.name in assigned and min(assigned) != self.name:
            yield from net.request(lambda: _remove(service.assignees, self.name))
            yield from self._write(TaskChange("pending", ""))
            return
        yield from net.request(self._comment)
        self.goes_on = self.has_won = True

    def look_again(self) -> Work:
        """Check the claim, as such a peer does before it opens a pull request."""
        if self.goes_on:
            line = yield from self._net.read(lambda shown: shown.line)
            self.goes_on = line in {"", self.name}

    def _write(self, change: TaskChange) -> Work:
        service = self._net.service
        seen = yield from self._net.read(lambda shown: shown.plan)
        yield from self._net.request(lambda: service.write(seen, change))

    def _comment(self) -> None:
        self._net.service.comments += 1
        self._net.service.claims.append(Claim(self._net.service.comments, self.name, NUMBER))


def _remove(names: list[str], name: str) -> None:
    names[:] = [one for one in names if one != name]


@dataclass(frozen=True)
class Race:
    """The result of a race: who won, who still held the task after a later check, and whose name the plan has."""

    winners: tuple[str, ...]
    later: tuple[str, ...]
    line: str


def race(
    seed: int, *, most_s: float, has_locks: bool = True, older: int = 0, lockless: int = 0, stale_s: float = 0.0
) -> Race:
    """Let two to four SOULs race for one task, with starts up to 15 s apart.

    `older` of them use the older protocol; `lockless` others use ours without the lock.
    """
    chance = random.Random(seed)
    author = [chance.choice(("sh-author", "aa-author"))] if chance.random() < 0.5 else []
    tasks = (Task(NUMBER, "wanted"), Task(2, "other", "in_progress", "sh-d") if chance.random() < 0.3 else Task(2, "x"))
    service = Service(Plan("x", tasks=tasks), author, has_locks)
    network = Network(service, chance, most_s, stale_s)
    names = chance.sample(("sh-a", "sh-b", "sh-c", "sh-d"), chance.randint(max(2, older + lockless + 1), 4))
    souls: list[Claimant | OlderPeer] = [
        OlderPeer(name, network) if place < older else Claimant(name, network, has_locks=place >= older + lockless)
        for place, name in enumerate(names)
    ]
    for soul in souls:
        network.start(chance.uniform(0, 15), soul.claim())
    network.run()
    winners = tuple(sorted(soul.name for soul in souls if soul.has_won))
    for soul in souls:
        network.start(1_000, soul.look_again())
    network.run()
    return Race(winners, tuple(sorted(soul.name for soul in souls if soul.goes_on)), service.line)


def killed(seed: int) -> Race:
    """Kill a SOUL during its claim, start it again, and let two others try: one soon, one after a lease has expired."""
    chance = random.Random(seed)
    service = Service(Plan("x", tasks=(Task(NUMBER, "wanted"),)), [], has_locks=True)
    network = Network(service, chance, 2.0)
    first, second, third = (Claimant(name, network) for name in ("sh-b", "sh-a", "sh-c"))
    network.start(0, _until(first.claim(), network, chance.uniform(0, 25), chance))
    network.start(40, first.undo())
    network.start(60, second.sweep_and_claim())
    network.start(3_000, third.sweep_and_claim())
    network.run()
    winners = tuple(soul.name for soul in (first, second, third) if soul.has_won)
    return Race(winners, winners, service.line)


def _until(work: Work, network: Network, end_s: float, chance: random.Random) -> Work:
    """Yield the steps of `work` until it is killed at `end_s`; its last request may still arrive."""
    end = START + timedelta(seconds=end_s)
    for pause in work:
        late = network.now + timedelta(seconds=pause) > end
        if late and chance.random() < 0.5:
            return
        yield pause
        if late:
            next(work, None)
            return
