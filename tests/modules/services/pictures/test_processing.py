"""A picture leaves within the limits of the network, upright, and with nothing beside what it shows."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from common.result import Err, Ok
from modules.services.pictures.processing import (
    IMAGE_MAX_DIMENSION,
    IMAGE_MAX_FILE_SIZE,
    SOURCE_MAX_BYTES,
    ProcessedImage,
    process_image_for_upload,
)
from town.gallery.pictures import NAMES, picture


def saved(drawn: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    drawn.save(out, kind, **options)
    return out.getvalue()


def noise(mode: str, width: int, height: int) -> Image.Image:
    return Image.frombytes(mode, (width, height), random.Random(1).randbytes(width * height * len(mode)))


def processed(data: bytes, **limits: int) -> ProcessedImage:
    result = process_image_for_upload(data, **limits)
    assert isinstance(result, Ok), result
    return result.data


def opened(image: ProcessedImage) -> Image.Image:
    return Image.open(io.BytesIO(image.buffer))


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_of_the_gallery_fits(name: str) -> None:
    image = processed(picture(name))
    shown = opened(image)
    assert image.processed_size <= IMAGE_MAX_FILE_SIZE
    assert (shown.size, Image.MIME[shown.format or ""]) == ((image.width, image.height), image.mime_type)
    assert not shown.getexif()
    assert "icc_profile" not in shown.info


def test_a_small_picture_is_not_enlarged_and_a_large_one_keeps_its_shape() -> None:
    small = processed(saved(Image.new("RGB", (30, 20), "red"), "PNG"))
    assert (small.width, small.height, small.mime_type) == (30, 20, "image/jpeg")
    large = processed(saved(Image.new("RGB", (4000, 1000), "red"), "JPEG"))
    assert (large.width, large.height) == (IMAGE_MAX_DIMENSION, 512)


def test_what_the_camera_says_of_the_way_up_is_done_and_left_out() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "A maker"
    image = processed(saved(Image.new("RGB", (200, 100), "red"), "JPEG", exif=exif, comment=b"here lives kit"))
    assert (image.width, image.height) == (100, 200)
    assert b"maker" not in image.buffer
    assert b"kit" not in image.buffer


@pytest.mark.slow
def test_too_many_bytes_are_scaled_away_step_by_step() -> None:
    data = saved(noise("RGB", 1000, 800), "PNG")
    image = processed(data, max_file_size=400_000)
    assert image.processed_size <= 400_000
    assert 300 <= image.width < 1000
    assert abs(image.width / image.height - 1.25) < 0.01
    refused = process_image_for_upload(data, max_file_size=1000)
    assert isinstance(refused, Err)
    assert refused.kind == "invalid"


@pytest.mark.slow
def test_transparency_stays_and_an_alpha_channel_without_any_goes() -> None:
    clear = Image.new("RGBA", (50, 50), (255, 0, 0, 0))
    assert processed(saved(clear, "PNG")).mime_type == "image/png"
    assert processed(saved(Image.new("RGBA", (50, 50), "red"), "PNG")).mime_type == "image/jpeg"
    grain = noise("RGBA", 900, 700)
    image = processed(saved(grain, "PNG"), max_file_size=1_500_000)
    assert image.mime_type == "image/webp"
    assert opened(image).mode == "RGBA"


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("colors", [2, 12])
@pytest.mark.slow
def test_a_drawing_of_few_colors_is_made_smaller_without_losing_a_pixel(mode: str, colors: int) -> None:
    rng = random.Random(colors)
    palette = [rng.randbytes(3) + (bytes([number % 2 * 255]) if mode == "RGBA" else b"") for number in range(colors)]
    drawn = Image.frombytes(mode, (400, 300), b"".join(rng.choices(palette, k=400 * 300)))
    plain = processed(saved(drawn, "PNG"))
    image = processed(saved(drawn, "PNG"), max_file_size=plain.processed_size - 1)
    assert (image.width, image.height) == drawn.size
    assert image.mime_type in {"image/png", "image/webp"}
    assert opened(image).convert(mode).tobytes() == drawn.tobytes()


def test_a_photograph_is_not_taken_for_a_drawing() -> None:
    image = processed(saved(noise("RGB", 600, 400), "PNG"), max_file_size=300_000)
    assert image.mime_type == "image/jpeg"
    assert image.width < 600


def test_of_an_animation_the_first_frame_is_shown() -> None:
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue")]
    image = processed(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert image.mime_type == "image/jpeg"
    red, _, blue = opened(image).crop((20, 20, 21, 21)).tobytes()
    assert red > 200 > blue


def _png_of(width: int, height: int) -> bytes:
    """A few bytes that claim to be a picture of that size."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html></html>",
        b"\x89PNG\r\n\x1a\n",
        picture("lighthouse.jpg")[:300],
        _png_of(30_000, 30_000),
        _png_of(7_000, 7_000),
        b"\0" * (SOURCE_MAX_BYTES + 1),
    ],
    ids=["empty", "page", "cut head", "cut body", "bomb", "too many pixels", "too many bytes"],
)
def test_what_is_no_picture_or_too_large_to_open_is_refused(data: bytes) -> None:
    refused = process_image_for_upload(data)
    assert isinstance(refused, Err)
    assert refused.kind == "invalid"
