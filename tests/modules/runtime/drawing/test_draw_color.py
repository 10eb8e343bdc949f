"""The colors of a picture stay what they are when its profile is taken off."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

from common.result import Ok
from modules.runtime.drawing.draw import for_upload

P3 = ((0.51512, 0.2412, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
GREEN = (60, 180, 75)


def fixed(*values: float) -> bytes:
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


def matrix_profile(*primaries: tuple[float, float, float]) -> bytes:
    """A profile with a gamma of 2.2 and these primaries, adapted to D50."""
    white = (0.9642, 1.0, 0.8249)
    name = b"wide\0"
    said = b"desc\0\0\0\0" + struct.pack(">I", len(name)) + name + bytes(78)
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(2.2 * 256))
    points = {
        tag: b"XYZ \0\0\0\0" + fixed(*xyz) for tag, xyz in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)
    }
    tags = {b"desc": said, b"cprt": b"text\0\0\0\0none\0", b"wtpt": b"XYZ \0\0\0\0" + fixed(*white), **points}
    tags |= dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), curve)
    table, data = struct.pack(">I", len(tags)), b""
    for tag, content in tags.items():
        padded = content + bytes(-len(content) % 4)
        table += tag + struct.pack(">II", 132 + 12 * len(tags) + len(data), len(padded))
        data += padded
    head = struct.pack(">I", 128 + len(table) + len(data)) + b"lcms" + struct.pack(">I", 0x02100000) + b"mntrRGB XYZ "
    head += struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + fixed(*white)
    return head + bytes(128 - len(head)) + table + data


def drawn(picture: Image.Image, kind: str, profile: bytes | None) -> Image.Image:
    out = io.BytesIO()
    picture.save(out, kind, icc_profile=profile)
    processed = for_upload(out.getvalue())
    assert isinstance(processed, Ok)
    found = Image.open(io.BytesIO(processed.data.data))
    assert "icc_profile" not in found.info
    return found


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_wide_color_is_brought_into_srgb(mode: str) -> None:
    color = GREEN if mode == "RGB" else (*GREEN, 128)
    pixel = drawn(Image.new(mode, (16, 16), color), "PNG", matrix_profile(*P3)).getpixel((8, 8))
    assert isinstance(pixel, tuple)
    assert pixel[:3] == pytest.approx((0, 185, 54), abs=6)
    assert pixel[3:] == color[3:]


@pytest.mark.parametrize("profile", [None, b"no profile", matrix_profile(*P3)[:200]])
def test_without_a_profile_that_can_be_used_the_colors_stay(profile: bytes | None) -> None:
    pixel = drawn(Image.new("RGB", (16, 16), GREEN), "PNG", profile).getpixel((8, 8))
    assert pixel == pytest.approx(GREEN, abs=3)


def test_greys_of_sixteen_bits_keep_their_light() -> None:
    pixel = drawn(Image.new("I;16", (16, 16), 30_000), "PNG", None).getpixel((8, 8))
    assert pixel == pytest.approx((117, 117, 117), abs=3)


def test_a_picture_for_printers_is_shown_in_light() -> None:
    pixel = drawn(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", None).getpixel((8, 8))
    assert pixel == pytest.approx((255, 0, 0), abs=6)
