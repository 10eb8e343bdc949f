"""Versions of the program in separate folders, like installations that replace one another."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.git.client import abort_input
from modules.runtime.home import Home
from tests.patience import HANG_S
from tests.program import Ended
from tests.project import ROOT

PACKAGES = ("adapters", "common", "local_tools", "modules", "skills", "soul", "town")
Edits = Mapping[str, tuple[str, str]]
"""For each file path, a text in the file and its replacement in that version."""


@dataclass
class Installation:
    """One installed program, and the folder in which this user keeps the state of programs."""

    root: Path
    state: str = "state"

    def kept(self) -> Iterator[Path]:
        """Yield the paths of the stored copies of versions."""
        return (
            path for path in (self.root / self.state).glob("soul/programs/*") if path.name.isalnum() and path.is_file()
        )

    def install(self, version: str, edits: Edits | None = None) -> None:
        """Replace the installed version by this one."""
        shutil.rmtree(self.root / "installed", ignore_errors=True)
        (self.root / "installed").mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in PACKAGES:
            shutil.copytree(ROOT / name, self.root / "installed" / name, ignore=ignored)
        for name in (".env.example", "BOOTSTRAP.md", "SELF.md", "SOUL.md"):
            shutil.copyfile(ROOT / name, self.root / "installed" / name)
        (self.root / "installed/common/version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
        for path, (old, new) in (edits or {}).items():
            text = (self.root / "installed" / path).read_text(encoding="utf-8")
            assert old in text, path
            (self.root / "installed" / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    @asynccontextmanager
    async def started(self, home: Home, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start a command of the installed version; kill it at the end if it still runs."""
        env = {
            **os.environ,
            "PYTHONPATH": str(self.root / "installed"),
            "XDG_STATE_HOME": str(self.root / self.state),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "soul.cli", *words, "--home", str(home.root)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd=self.root,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await abort_input(process)

    async def run(self, home: Home, *words: str) -> Ended:
        """Run a command of the installed version to its end."""
        async with self.started(home, *words) as process:
            output, _ = await asyncio.wait_for(process.communicate(), HANG_S)
            return Ended(process.returncode or 0, output.decode())
