"""Programs for a test of discovery between two hosts: `python -m tests.adapters.space.lan_peer ROLE …`.

`serve ADDRESS PORT` runs our server with its advertisement, `find` our discovery. `shout ADDRESS PORT` and
`ask ADDRESS` send, byte by byte, what the original server and client send: one multicast packet each way. `shout`
takes further names, which its packet advertises first.
"""

import asyncio
import socket
import struct
import sys

from adapters.space.browsing import advertise
from adapters.space.discovery import discover_space
from adapters.space.server import SpaceServer
from common.result import Err, Ok

_GROUP = ("224.0.0.251", 5353)
_SERVICE = "_agent-space._tcp.local"
_INSTANCE = f"agent-space.{_SERVICE}"
_RAW_HOST = "MARVIN-BOX"
_A, _PTR, _TXT, _SRV, _IN, _FLUSH = 1, 12, 16, 33, 1, 0x8001


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _name(text: str) -> bytes:
    return b"".join(struct.pack("B", len(label)) + label.encode() for label in text.split(".")) + b"\0"


def _record(name: str, kind: int, cls: int, ttl_s: int, data: bytes) -> bytes:
    return _name(name) + struct.pack(">HHIH", kind, cls, ttl_s, len(data)) + data


def _read_name(packet: bytes, at: int) -> tuple[str, int]:
    labels: list[str] = []
    end = 0
    while packet[at]:
        if packet[at] >= 0xC0:
            end = end or at + 2
            at = struct.unpack_from(">H", packet, at)[0] & 0x3FFF
            continue
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(labels), end or at + 1


def _records(packet: bytes) -> list[tuple[str, int, int]]:
    """Return the name, the type and the offset of the data of every record of an answer."""
    questions, *sections = struct.unpack_from(">4H", packet, 4)
    at, found = 12, []
    for _ in range(questions):
        at = _read_name(packet, at)[1] + 4
    for _ in range(sum(sections)):
        name, at = _read_name(packet, at)
        kind, _, _, length = struct.unpack_from(">HHIH", packet, at)
        found.append((name, kind, at + 10))
        at += 10 + length
    return found


def _socket(address: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", _GROUP[1]))
    membership = socket.inet_aton(_GROUP[0]) + socket.inet_aton(address)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    return sock


def _shout(address: str, port: int, others: list[str]) -> None:
    strays = [_record(_SERVICE, _PTR, _IN, 28_800, _name(f"{other}.{_SERVICE}")) for other in others]
    pointer = _record(_SERVICE, _PTR, _IN, 28_800, _name(_INSTANCE))
    service = _record(_INSTANCE, _SRV, _FLUSH, 120, struct.pack(">HHH", 0, 0, port) + _name(_RAW_HOST))
    text = _record(_INSTANCE, _TXT, _FLUSH, 4_500, b"\0")
    host = _record(_RAW_HOST, _A, _FLUSH, 120, socket.inet_aton(address))
    head = struct.pack(">6H", 0, 0x8400, 0, len(strays) + 1, 0, 3)
    answer = head + b"".join(strays) + pointer + service + text + host
    with socket.create_server((address, port)), _socket(address) as sock:
        _say("shouting")
        while True:
            packet = sock.recv(9_000)
            is_query = not struct.unpack_from(">H", packet, 2)[0] & 0x8000
            if is_query and _read_name(packet, 12)[0].lower() == _SERVICE:
                sock.sendto(answer, _GROUP)


def _ask(address: str) -> None:
    """Ask once; print the URL of the first answer that holds the pointer and the service record together."""
    with _socket(address) as sock:
        sock.settimeout(5)
        sock.sendto(struct.pack(">6H", 0, 0, 1, 0, 0, 0) + _name(_SERVICE) + struct.pack(">HH", _PTR, _IN), _GROUP)
        while True:
            packet = sock.recv(9_000)
            records = {kind: at for _, kind, at in _records(packet)}
            if _PTR in records and _SRV in records:
                port = struct.unpack_from(">H", packet, records[_SRV] + 4)[0]
                _say(f"ws://{_read_name(packet, records[_SRV] + 6)[0]}:{port}")
                return


async def _serve(address: str, port: int) -> None:
    server = SpaceServer()
    started = await server.start(port, (address,))
    advertised = await advertise("agent.space", port, (address,))
    if isinstance(started, Err) or isinstance(advertised, Err):
        _say(f"{started} {advertised}")
        return
    _say(f"serving {advertised.data.name}")
    await asyncio.Event().wait()


async def _find() -> None:
    found = await discover_space(space_url="")
    _say(found.data if isinstance(found, Ok) else found.error)


if __name__ == "__main__":
    role, *args = sys.argv[1:]
    if role == "serve":
        asyncio.run(_serve(args[0], int(args[1])))
    elif role == "find":
        asyncio.run(_find())
    elif role == "shout":
        _shout(args[0], int(args[1]), args[2:])
    else:
        _ask(args[0])
