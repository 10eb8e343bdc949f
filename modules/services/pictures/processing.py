"""Draws a picture anew for upload: upright, within the limits of the network, and without its metadata. Pure."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from PIL import Image

IMAGE_MAX_DIMENSION = 2048
IMAGE_MAX_FILE_SIZE = 2_000_000
SOURCE_MAX_BYTES = 10 * 1024 * 1024

_MAX_PIXELS = 40_000_000
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_SCALES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_JPEG_QUALITY = 95
_WEBP_QUALITY = 90
_OPAQUE = 255
_FLAT_COLORS = 256
_TOO_MANY_PIXELS = Err(f"the picture has more than {_MAX_PIXELS // 1_000_000} million pixels", "invalid")


@dataclass(frozen=True, slots=True)
class ProcessedImage:
    """A picture as it is uploaded: JPEG, or PNG or WebP where that keeps more of it. Sizes are in pixels and bytes."""

    buffer: bytes
    mime_type: str
    width: int
    height: int

    @property
    def processed_size(self) -> int:
        """How many bytes are uploaded."""
        return len(self.buffer)


def process_image_for_upload(
    data: bytes,
    max_width: int = IMAGE_MAX_DIMENSION,
    max_height: int = IMAGE_MAX_DIMENSION,
    max_file_size: int = IMAGE_MAX_FILE_SIZE,
) -> ApiResult[ProcessedImage]:
    """Return the first frame of a picture, drawn anew within the limits and never enlarged.

    Where it has too many bytes, a drawing of few colors is written without a loss as PNG with a palette, or as WebP,
    and a transparent picture as WebP; what is still too large is scaled down in steps, to three tenths at least.
    Returns an `Err` of kind `invalid` for what is no picture, is too large to be opened, or still does not fit.
    """
    if len(data) > SOURCE_MAX_BYTES:
        return Err(f"the picture has more than {SOURCE_MAX_BYTES} bytes", "invalid")
    from PIL import Image  # noqa: PLC0415 - most lives share no picture for hours

    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return _TOO_MANY_PIXELS
            bare = _bare(opened)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return _TOO_MANY_PIXELS
    except Exception as error:
        # NOTE(self): a file that was made to harm breaks a decoder in ways that nobody has listed.
        return Err(f"it is no picture that can be read: {' '.join(str(error).split())[:100]}", "invalid")
    bare.thumbnail((max_width, max_height), Image.Resampling.LANCZOS)
    for scale in _SCALES:
        size = (max(1, round(bare.width * scale)), max(1, round(bare.height * scale)))
        drawn = bare if size == bare.size else bare.resize(size, Image.Resampling.LANCZOS)
        for mime_type, buffer in _encoded(drawn):
            if len(buffer) <= max_file_size:
                return Ok(ProcessedImage(buffer, mime_type, *size))
    return Err(f"the picture does not fit into {max_file_size} bytes", "invalid")


def _bare(opened: Image.Image) -> Image.Image:
    """The pixels of the first frame, upright, with an alpha channel only where something is transparent."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - as above

    upright = ImageOps.exif_transpose(opened)
    plain = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    if plain.mode == "RGBA" and plain.getchannel("A").getextrema() == (_OPAQUE, _OPAQUE):
        plain = plain.convert("RGB")
    return Image.frombytes(plain.mode, plain.size, plain.tobytes())


def _encoded(drawn: Image.Image) -> Iterator[tuple[str, bytes]]:
    """Yield the picture in the formats that may be tried, the best first; without a loss where it has few colors."""
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
    """The same pixels, each as a number in a palette; as they are where that would change any."""
    from PIL import Image  # noqa: PLC0415 - as above

    counted = drawn.quantize(_FLAT_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    return counted if counted.convert(drawn.mode).tobytes() == drawn.tobytes() else drawn


def _saved(drawn: Image.Image, kind: str, **options: int) -> bytes:
    out = io.BytesIO()
    drawn.save(out, kind, **options)
    return out.getvalue()
