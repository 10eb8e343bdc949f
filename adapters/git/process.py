"""Runs `git` with the settings that every run gets (`params`), to its end, its deadline or its limits.

What a repository holds may be made to fill memory or disk when it is unpacked or compared. So a run may hold so much
memory, write files of such a size, and say so much; what goes beyond ends it.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.files import is_machine_trouble
from common.result import Err
from common.text.source_text import read_source

MIB = 1024 * 1024
MOST_FILE_BYTES = 512 * MIB
"""The size of the largest file that git may write: the pack of a repository."""
_MOST_MEMORY_BYTES = 176 * MIB
MOST_OUT_BYTES = 16 * MIB
_MOST_TOLD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_NOT_FOUND = 127
_FILE = b"diff --git "
_FILES = re.compile(b"^(?=%s)" % _FILE, re.MULTILINE)
# NOTE(self): set by a shell, since code of ours between fork and exec may hang in a process with threads.
_LIMITED = (
    f'ulimit -d {_MOST_MEMORY_BYTES // 1024} 2>/dev/null; ulimit -f {MOST_FILE_BYTES // 512} 2>/dev/null; exec git "$@"'
)


@dataclass(frozen=True, slots=True)
class GitRun:
    """A run that ended: its exit code, what it wrote to stdout, and what it told on stderr.

    `is_cut` says that it was ended because it wrote more to stdout than it may; `out` is then the beginning.
    """

    code: int
    out: str
    told: str
    is_cut: bool = False


async def run_git(
    arguments: tuple[str, ...],
    *,
    at: Path,
    env: Mapping[str, str],
    deadline_s: float,
    given: str = "",
    most_bytes: int = MOST_OUT_BYTES,
) -> GitRun | Err:
    """Run `git` in the folder `at` with `given` on stdin.

    A run that writes more than `most_bytes` to stdout is ended. The error is of kind `invalid` where it does not start,
    `transient` where the machine fails for now, and `unknown_outcome` where it does not end in time.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _LIMITED,
            "git",
            *arguments,
            cwd=at,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        if is_machine_trouble(error):
            return Err(f"git cannot be started now: {error.strerror}", "transient")
        return Err(f"git cannot be started ({error.strerror}): install it", "invalid")
    try:
        async with asyncio.timeout(deadline_s):
            out, told = await _talk(process, given.encode(), most_bytes)
            if not (is_cut := len(out) > most_bytes):
                await process.wait()
    except TimeoutError:
        return Err(f"it took longer than {deadline_s:g} s", "unknown_outcome")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await drain(process)
    if is_cut:
        beginning = _text(out[:most_bytes])
        return GitRun(process.returncode or 0, beginning, f"it lists more than {most_bytes // MIB} MiB", is_cut=True)
    if process.returncode == _NOT_FOUND:
        return Err("git cannot be started: install it", "invalid")
    return GitRun(process.returncode or 0, _text(out), told.decode(errors="replace"))


def _text(out: bytes) -> str:
    """Return what git printed as text, each file of a diff in the encoding that it has."""
    text = _decoded(out)
    return "".join(map(_part, _FILES.split(out))) if text is None else text


def _part(part: bytes) -> str:
    """Return the diff of one file as text; only its lines that are not UTF-8 tell its encoding, as that may change."""
    lines = part.splitlines(keepends=True)
    odd = b"".join(line for line in lines if _decoded(line) is None)
    source = read_source(odd) if part.startswith(_FILE) else None
    encoding = source.encoding if source else "utf-8"
    return "".join(_decoded(line) or line.decode(encoding, errors="replace") for line in lines)


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


async def _talk(process: asyncio.subprocess.Process, given: bytes, most: int) -> tuple[bytes, bytes]:
    """Hand a run its input; return what it writes to stdout, until that is more than `most` bytes, and to stderr."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("the streams are pipes")
    writing = asyncio.create_task(_write(process.stdin, given))
    telling = asyncio.create_task(_last_of(process.stderr))
    try:
        out = await _all_of(process.stdout, most)
        return out, b"" if len(out) > most else await telling
    finally:
        for task in (writing, telling):
            task.cancel()
        await asyncio.gather(writing, telling, return_exceptions=True)


async def drain(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a run that was killed, and of its pipes: asyncio sees it only once they were read whole."""
    await abort_input(process)
    for stream in (process.stdout, process.stderr):
        while stream and await stream.read(_CHUNK_BYTES):
            pass
    await process.wait()


async def abort_input(process: asyncio.subprocess.Process) -> None:
    """Close the pipe to a process's input without what is not read yet."""
    if process.stdin is None:
        return
    if not process.stdin.is_closing():
        process.stdin.transport.abort()
    with suppress(OSError):
        await process.stdin.wait_closed()


async def _write(stdin: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(given)
        await stdin.drain()
        stdin.close()


async def _all_of(stream: asyncio.StreamReader, most: int) -> bytes:
    read = bytearray()
    while len(read) <= most and (chunk := await stream.read(_CHUNK_BYTES)):
        read += chunk
    return bytes(read)


async def _last_of(stream: asyncio.StreamReader) -> bytes:
    read = b""
    while chunk := await stream.read(_CHUNK_BYTES):
        read = (read + chunk)[-_MOST_TOLD_BYTES:]
    return read
