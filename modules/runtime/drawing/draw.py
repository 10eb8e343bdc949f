"""Redraws a picture: upright, small enough, and without anything beside what it shows; and the process that does it.

The size that a file declares is checked before it is decoded. A decoder may still need more memory than that, so
pictures that others made are redrawn only by `apart.py`.

That process is started by `apart.py` and knows nothing of the SOUL: no environment, no file of the home, no connection.
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from PIL import Image


Purpose: TypeAlias = Literal["model", "upload"]

MOST_BYTES = 25 * 1024 * 1024
MOST_SIDE = 16_384
MOST_PIXELS = 4096 * 4096
MOST_PIXELS_JPEG = 40_000_000
"""A JPEG is decoded at a fraction of its size; anything else is decoded whole."""
UPLOAD_MAX_SIDE = 2048
UPLOAD_MAX_BYTES = 2_000_000
MODEL_MAX_SIDE = 1024

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_SCALES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_GAP = 2.0
_MODEL_QUALITY = 85
_JPEG_QUALITY = 95
_WEBP_QUALITY = 90
_OPAQUE = 255
_FLAT_COLORS = 256
_PROFILE_MAX_BYTES = 4 * 1024 * 1024
_WITH_PROFILE = frozenset({"CMYK", "L"})


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """A redrawn picture: JPEG, or PNG or WebP where that keeps more of it. Sizes are in pixels."""

    data: bytes
    mime: str
    width: int
    height: int


def for_model(data: bytes) -> ApiResult[DrawnPicture]:
    """Return the first frame for a model: JPEG, or PNG if it is transparent.

    Returns an `Err` of kind `invalid` if the data is no picture, or is too large to be opened.
    """
    bare = _first_frame(data, MODEL_MAX_SIDE)
    if isinstance(bare, Err):
        return bare
    drawn = bare.data
    if drawn.mode == "RGBA":
        return Ok(DrawnPicture(_saved(drawn, "PNG"), "image/png", *drawn.size))
    return Ok(DrawnPicture(_saved(drawn, "JPEG", quality=_MODEL_QUALITY), "image/jpeg", *drawn.size))


def for_upload(
    data: bytes, max_side: int = UPLOAD_MAX_SIDE, max_file_size: int = UPLOAD_MAX_BYTES
) -> ApiResult[DrawnPicture]:
    """Return the first frame within the limits of the network, never enlarged.

    If it has too many bytes, a picture of few colors is written losslessly as PNG with a palette, or as WebP, and a
    transparent picture as WebP; what is still too large is scaled down in steps, to three tenths at least.
    Returns an `Err` of kind `invalid` if the data is no picture, is too large to be opened, or still does not fit.
    """
    bare = _first_frame(data, max_side)
    if isinstance(bare, Err):
        return bare
    from PIL import Image  # noqa: PLC0415 - most lives meet no picture for hours

    whole = bare.data
    for scale in _SCALES:
        size = (max(1, round(whole.width * scale)), max(1, round(whole.height * scale)))
        drawn = whole if size == whole.size else whole.resize(size, Image.Resampling.LANCZOS)
        for mime, written in _encoded(drawn):
            if len(written) <= max_file_size:
                return Ok(DrawnPicture(written, mime, *size))
    return Err(f"the picture does not fit into {max_file_size} bytes", "invalid")


FOR: Mapping[Purpose, Callable[[bytes], ApiResult[DrawnPicture]]] = {"model": for_model, "upload": for_upload}


def _first_frame(data: bytes, max_side: int) -> ApiResult[Image.Image]:
    """Return the first frame, upright and at most `max_side` long, with alpha only if something is transparent."""
    if len(data) > MOST_BYTES:
        return Err("the picture has too many bytes", "invalid")
    from PIL import Image  # noqa: PLC0415 - as above

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            if problem := too_large(opened.size, opened.format or ""):
                return Err(problem, "invalid")
            return Ok(_bare(opened, max_side))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return Err("the picture has too many pixels", "invalid")
    except MemoryError:
        return Err("the picture takes too much memory", "invalid")
    except Exception as error:
        # NOTE(self): a malicious file breaks a decoder in ways that nobody has listed.
        return Err(f"it is no picture that can be read: {' '.join(str(error).split())[:100]}", "invalid")


def too_large(size: tuple[int, int], form: str) -> str:
    """Return why a picture of that size is not decoded; "" if it is."""
    width, height = size
    if max(size) > MOST_SIDE:
        return f"the picture is longer than {MOST_SIDE} pixels"
    most = MOST_PIXELS_JPEG if form == "JPEG" else MOST_PIXELS
    return f"the picture has more than {most // 1_000_000} million pixels" if width * height > most else ""


def _bare(opened: Image.Image, max_side: int) -> Image.Image:
    from PIL import Image, ImageOps  # noqa: PLC0415 - as above

    opened.draft("RGB", (max_side, max_side))
    transparent = opened.has_transparency_data
    profile = opened.info.get("icc_profile")
    wanted: Literal["RGB", "RGBA"] = "RGBA" if transparent else "RGB"
    if opened.mode.startswith("I"):
        # NOTE(self): greys of 16 bits; the library cuts off what does not fit into eight.
        opened = opened.point(lambda grey: grey * (1 / 257)).convert("L")
    # NOTE(self): a profile for CMYK or grey refers to that mode, so the mode stays until the profile is applied.
    is_ready = opened.mode == wanted or (opened.mode in _WITH_PROFILE and not transparent)
    plain = opened if is_ready else opened.convert(wanted)
    # NOTE(self): scaled down before anything is copied, so that only one copy is ever of the full size.
    plain.thumbnail((max_side, max_side), Image.Resampling.LANCZOS, reducing_gap=_GAP)
    ImageOps.exif_transpose(plain, in_place=True)
    plain = in_srgb(plain, profile, wanted)
    if transparent and plain.getchannel("A").getextrema() == (_OPAQUE, _OPAQUE):
        plain = plain.convert("RGB")
    return Image.frombytes(plain.mode, plain.size, plain.tobytes())


def in_srgb(picture: Image.Image, profile: object, mode: Literal["RGB", "RGBA"]) -> Image.Image:
    """Return the picture in `mode` and sRGB; without a usable profile its values are taken to be sRGB."""
    if isinstance(profile, bytes) and len(profile) <= _PROFILE_MAX_BYTES:
        from PIL import ImageCms  # noqa: PLC0415 - most lives meet no picture for hours

        try:
            found = ImageCms.profileToProfile(
                picture,
                ImageCms.ImageCmsProfile(io.BytesIO(profile)),
                ImageCms.createProfile("sRGB"),
                outputMode=mode,
            )
        except (ImageCms.PyCMSError, OSError, ValueError):
            found = None
        if found is not None:
            return found
    return picture if picture.mode == mode else picture.convert(mode)


def _encoded(drawn: Image.Image) -> Iterator[tuple[str, bytes]]:
    """Yield the picture in the formats to try, the best first; losslessly too if it has few colors."""
    if drawn.mode == "RGBA":
        yield "image/png", _saved(drawn, "PNG", compress_level=9)
    else:
        yield "image/jpeg", _saved(drawn, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    if drawn.getcolors(_FLAT_COLORS) is not None:
        yield "image/png", _saved(_with_palette(drawn), "PNG", compress_level=9)
        yield "image/webp", _saved(drawn, "WEBP", lossless=True, exact=True)
    if drawn.mode == "RGBA":
        yield "image/webp", _saved(drawn, "WEBP", quality=_WEBP_QUALITY)


def _with_palette(drawn: Image.Image) -> Image.Image:
    """Return the same pixels with a palette, or the picture as it is if that would change any."""
    from PIL import Image  # noqa: PLC0415 - as above

    counted = drawn.quantize(_FLAT_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    return counted if counted.convert(drawn.mode).tobytes() == drawn.tobytes() else drawn


def _saved(drawn: Image.Image, kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    drawn.save(out, kind, **options)
    return out.getvalue()


MEMORY_MAX_BYTES = 512 * 1024 * 1024
"""Limits the address space, so whatever a decoder asks for; Python and its libraries take some 100 MB of it."""
CPU_MAX_S = 10
_NICE = 5


def main() -> None:
    """Redraw the picture on standard input for the purpose that the command line names."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.nice(_NICE)
    (draw,) = (draw for purpose, draw in FOR.items() if purpose == sys.argv[1])
    drawn = draw(sys.stdin.buffer.read())
    if isinstance(drawn, Ok):
        told = {"mime": drawn.data.mime, "width": drawn.data.width, "height": drawn.data.height}
        sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + drawn.data.data)
    else:
        sys.stdout.buffer.write(json.dumps({"error": drawn.error}).encode() + b"\n")


if __name__ == "__main__":
    main()
