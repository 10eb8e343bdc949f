"""Draws pictures in a process of their own, one at a time, so that a picture costs neither our memory nor our time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from common.result import ApiResult, Err, Ok
from modules.runtime.drawing.draw import MOST_BYTES, UPLOAD_MAX_SIDE, DrawnPicture, Purpose

_WORKER = "modules.runtime.drawing.worker"
_ROOT = Path(__file__).resolve().parents[3]
_DEADLINE_S = 30.0
_TOO_MUCH = Err("the picture takes too much memory or time", "invalid")
_Side = Annotated[int, Field(ge=1, le=UPLOAD_MAX_SIDE)]


class _Told(BaseModel):
    mime: Literal["image/jpeg", "image/png", "image/webp"]
    width: _Side
    height: _Side


class _Refused(BaseModel):
    error: str = Field(max_length=200)


class PictureDrawer:
    """Draws one picture at a time; each takes at most half a gigabyte and ten seconds of work."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()

    async def draw(self, data: bytes, purpose: Purpose) -> ApiResult[DrawnPicture]:
        """Return a picture drawn anew, or why it cannot be: an `Err` of kind `invalid`."""
        if len(data) > MOST_BYTES:
            return Err("the picture has too many bytes", "invalid")
        async with self._alone:
            return await asyncio.to_thread(_drawn, data, purpose)


def _drawn(data: bytes, purpose: Purpose) -> ApiResult[DrawnPicture]:
    line = [sys.executable, "-m", _WORKER, purpose]
    try:
        ran = subprocess.run(  # noqa: S603 - our own program; nothing of the line is anybody's words
            line, input=data, capture_output=True, cwd=_ROOT, env={}, timeout=_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return _TOO_MUCH
    return _picture(ran.stdout) if ran.returncode == 0 else _TOO_MUCH


def _picture(said: bytes) -> ApiResult[DrawnPicture]:
    line, _, data = said.partition(b"\n")
    try:
        if not data:
            return Err(_Refused.model_validate_json(line).error, "invalid")
        told = _Told.model_validate_json(line)
    except ValidationError:
        return Err("it is no picture that can be read", "invalid")
    return Ok(DrawnPicture(data, told.mime, told.width, told.height))
