"""Redraws pictures in a separate process, one at a time, so that a picture costs neither our memory nor our time."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from common.result import ApiResult, Err, Ok
from modules.runtime.drawing.draw import MOST_BYTES, UPLOAD_MAX_SIDE, DrawnPicture, Purpose

_WORKER = "modules.runtime.drawing.draw"
_ROOT = Path(__file__).resolve().parents[3]
# NOTE(self): the worker limits its own processor time; on a busy machine that lasts far longer, as it is niced.
_DEADLINE_S = 300.0
_TOO_MUCH = Err("the picture takes too much memory or time", "invalid")
_Side = Annotated[int, Field(ge=1, le=UPLOAD_MAX_SIDE)]


class _Told(BaseModel):
    mime: Literal["image/jpeg", "image/png", "image/webp"]
    width: _Side
    height: _Side


class _DrawingError(BaseModel):
    error: str = Field(max_length=200)


class PictureDrawer:
    """Redraws one picture at a time; each takes at most half a gigabyte and ten seconds of processor time."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()

    async def draw(self, data: bytes, purpose: Purpose) -> ApiResult[DrawnPicture]:
        """Return the redrawn picture, or an `Err` of kind `invalid` that says why there is none."""
        if len(data) > MOST_BYTES:
            return Err("the picture has too many bytes", "invalid")
        await self._alone.acquire()
        drawing = _Drawing(data, purpose)
        work = asyncio.ensure_future(asyncio.to_thread(drawing.run))
        # NOTE(self): if our caller is cancelled, the process runs for a moment longer, and the next one waits for it.
        work.add_done_callback(self._ended)
        try:
            return await asyncio.shield(work)
        finally:
            drawing.end()

    def _ended(self, work: asyncio.Future[ApiResult[DrawnPicture]]) -> None:
        self._alone.release()
        if not work.cancelled():
            work.exception()  # nobody waits for it any more, so asyncio must not report it


class _Drawing:
    """One process that draws one picture; `end` ends it from another thread."""

    def __init__(self, data: bytes, purpose: Purpose) -> None:
        self._data = data
        self._purpose = purpose
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def run(self) -> ApiResult[DrawnPicture]:
        """Return the picture or an `Err`; the process has ended by then."""
        line = [sys.executable, "-B", "-m", _WORKER, self._purpose]
        pipe = subprocess.PIPE
        with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, cwd=_ROOT, env={}) as process:  # noqa: S603 - our own program; nothing of the line is anybody's words
            self._process = process
            if self._is_over:
                process.kill()
            try:
                said, _ = process.communicate(self._data, timeout=_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return _TOO_MUCH
        return _picture(said) if process.returncode == 0 else _TOO_MUCH

    def end(self) -> None:
        """Kill the process; if it does not run yet, kill it as soon as it starts."""
        self._is_over = True
        if self._process is not None:
            self._process.kill()


def _picture(said: bytes) -> ApiResult[DrawnPicture]:
    line, _, data = said.partition(b"\n")
    try:
        if not data:
            return Err(_DrawingError.model_validate_json(line).error, "invalid")
        told = _Told.model_validate_json(line)
    except ValidationError:
        return Err("it is no picture that can be read", "invalid")
    return Ok(DrawnPicture(data, told.mime, told.width, told.height))
