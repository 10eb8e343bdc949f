"""Brings the colors of a picture into sRGB, so that they stay what they are once its profile is taken off. Pure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from PIL import Image

_MOST_BYTES = 4 * 1024 * 1024


def in_srgb(picture: Image.Image, profile: object, mode: Literal["RGB", "RGBA"]) -> Image.Image:
    """Return the picture in `mode` and sRGB; without a profile that can be used its numbers are taken to be sRGB."""
    if isinstance(profile, bytes) and len(profile) <= _MOST_BYTES:
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
