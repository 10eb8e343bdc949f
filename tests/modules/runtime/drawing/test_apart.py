"""A picture costs its bytes: however it was made, it is drawn or refused in little memory and time, and not in ours."""

from __future__ import annotations

import asyncio
import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from PIL import Image

from common.result import Err, Ok
from modules.runtime.drawing.apart import PictureDrawer
from modules.runtime.drawing.draw import MOST_PIXELS
from tests.patience import until
from tests.project import ROOT
from town.gallery.library import NAMES, picture

MEASURE = """
import asyncio, pathlib, resource, sys
from modules.runtime.drawing.apart import PictureDrawer
result = asyncio.run(PictureDrawer().draw(pathlib.Path(sys.argv[1]).read_bytes(), sys.argv[2]))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(type(result).__name__, used.ru_maxrss, used.ru_utime + used.ru_stime)
"""
MOST_KB = 400 * 1024
MOST_CPU_S = 10.0


def flat_png(width: int, height: int) -> bytes:
    """A whole picture of one color, in as few bytes as it can have."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    packer, rows = zlib.compressobj(9), (65_536 // (3 * width + 1) or 1)
    block = (b"\0" * (3 * width + 1)) * rows
    packed = [packer.compress(block) for _ in range(height // rows)]
    packed += [packer.compress((b"\0" * (3 * width + 1)) * (height % rows)), packer.flush()]
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b"".join(packed)) + chunk(b"IEND", b"")


def flat(side: int, form: str, mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, (side, side)).save(out, form, **({"lossless": True, "method": 0} if form == "WEBP" else {}))
    return out.getvalue()


def measured(data: bytes, purpose: str, folder: Path) -> tuple[str, int, float]:
    """What came of a picture, the memory that was taken for it in KB, and the seconds of a processor.

    A process of its own measures: the kernel counts what a process held when it started a child as the child's.
    """
    (folder / "picture").write_bytes(data)
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, folder / "picture", purpose], check=True, capture_output=True, cwd=ROOT
    )
    kind, memory_kb, cpu_s = ran.stdout.decode().split()
    return kind, int(memory_kb), float(cpu_s)


@pytest.mark.slow
@pytest.mark.parametrize("purpose", ["model", "upload"])
def test_a_picture_that_was_made_to_be_large_takes_little(purpose: str, tmp_path: Path) -> None:
    most = int(MOST_PIXELS**0.5)
    crafted = {
        "a line of pixels": flat_png(1, 39_999_999),
        "long": flat_png(16_384, 1000),
        "as large as may be": flat_png(most, most),
        "larger": flat(6300, "WEBP"),
        "as large as may be, transparent": flat(most, "WEBP", "RGBA"),
        "a photograph of many pixels": flat(6300, "JPEG"),
    }
    refused = {"a line of pixels", "larger"}
    for name, data in crafted.items():
        kind, memory_kb, cpu_s = measured(data, purpose, tmp_path)
        assert (kind == "Err") == (name in refused), name
        assert (memory_kb < MOST_KB, cpu_s < MOST_CPU_S) == (True, True), (name, memory_kb, cpu_s)


@pytest.mark.slow
async def test_whatever_may_be_shown_is_drawn_as_in_the_process_itself() -> None:
    for name in NAMES:
        result = await PictureDrawer().draw(picture(name), "model")
        assert isinstance(result, Ok), name


@pytest.mark.parametrize("data", [b"", b"no picture", picture("lighthouse.jpg")[:300]])
async def test_what_is_no_picture_is_refused(data: bytes) -> None:
    result = await PictureDrawer().draw(data, "model")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


def workers() -> set[str]:
    """The processes that this one started and that did not end yet."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


async def test_a_drawing_that_is_given_up_ends_before_the_next_begins() -> None:
    drawer, before = PictureDrawer(), workers()
    most = int(MOST_PIXELS**0.5)
    given_up = asyncio.create_task(drawer.draw(flat(most, "WEBP", "RGBA"), "upload"))
    await until(lambda: bool(workers() - before))
    large = workers() - before
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert isinstance(await drawer.draw(flat(8, "PNG"), "upload"), Ok)
    assert not workers() & large
