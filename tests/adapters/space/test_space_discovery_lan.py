"""Tests of discovery between two hosts, made of network namespaces: our rooms and original ones are found."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ip") is None or os.geteuid() != 0, reason="needs root and the tools of iproute2"),
]

_ROOT = Path(__file__).parents[3]
_PORT = "7791"


@dataclass(frozen=True)
class Host:
    """One of the two hosts."""

    namespace: str
    address: str

    def command(self, *args: str) -> list[str]:
        return [
            "ip", "netns", "exec", self.namespace, sys.executable, "-m", "tests.adapters.space.lan_peer", *args,
        ]  # fmt: skip

    def run(self, *args: str) -> str:
        done = subprocess.run(self.command(*args), cwd=_ROOT, capture_output=True, text=True, timeout=30, check=False)
        return (done.stdout + done.stderr).strip()

    @contextmanager
    def running(self, *args: str) -> Iterator[str]:
        """Run a program until the block ends; yield its first line of output."""
        with subprocess.Popen(self.command(*args), cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            try:
                yield process.stdout.readline().strip()
            finally:
                process.kill()


def _ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    names = [f"soul{os.getpid()}{side}" for side in "ab"]
    links = [f"ve{os.getpid() % 1_000_000}{side}" for side in "ab"]
    pair = Host(names[0], "10.77.7.1"), Host(names[1], "10.77.7.2")
    try:
        for name in names:
            _ip("netns", "add", name)
        _ip("link", "add", links[0], "netns", names[0], "type", "veth", "peer", "name", links[1], "netns", names[1])
        for host, link in zip(pair, links, strict=True):
            _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", link)
            for device in ("lo", link):
                _ip("-n", host.namespace, "link", "set", device, "up")
            _ip("-n", host.namespace, "route", "add", "224.0.0.0/4", "dev", link)
        yield pair
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_our_client_finds_our_server_across_the_network(hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with there.running("serve", there.address, _PORT) as said:
        assert said == "serving agent-space"
        assert here.run("find") == f"ws://{there.address}:{_PORT}"


def test_our_client_finds_a_server_of_the_first_make_by_the_address_beside_its_raw_host_name(
    hosts: tuple[Host, Host],
) -> None:
    here, there = hosts
    with there.running("shout", there.address, _PORT) as said:
        assert said == "shouting"
        assert here.run("find") == f"ws://{there.address}:{_PORT}"


def test_a_name_that_no_service_may_have_hides_no_other_room(hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with there.running("shout", there.address, _PORT, "odd\x01name", f"{'a' * 40}.{'b' * 40}"):
        assert here.run("find") == f"ws://{there.address}:{_PORT}"


def test_a_client_of_the_first_make_finds_our_server_with_its_one_question(hosts: tuple[Host, Host]) -> None:
    here, there = hosts
    with there.running("serve", there.address, _PORT):
        assert here.run("ask", here.address) == f"ws://{there.address}:{_PORT}"


def test_in_a_network_without_a_room_none_is_found_and_nothing_fails(hosts: tuple[Host, Host]) -> None:
    here, _ = hosts
    assert here.run("find") == "nobody advertises one, and none is on this machine"
