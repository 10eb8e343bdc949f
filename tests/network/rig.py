"""Bluesky's own server software on loopback, started and stopped by the scripts beside this file."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Rig:
    """A running network; `settle` returns once everything written so far can be read.

    `feeds_did` is the DID of the service that makes feeds.
    """

    pds: str
    control: str
    jwt_secret: str
    feeds_did: str

    @classmethod
    def start(cls) -> Rig:
        """Start the network, or join the one that `run.sh` started; `start.sh` lists its environment variables."""
        done = subprocess.run([_HERE / "start.sh"], capture_output=True, text=True, timeout=180, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        told: dict[str, Any] = json.loads(done.stdout)
        return cls(told["pds"], told["control"], told["jwt_secret"], told["feeds_did"])

    def settle(self) -> None:
        httpx.post(f"{self.control}/settle", timeout=30).raise_for_status()

    def announce(self, feed: str) -> None:
        """Make the feed of this address show the posts that have its name as a tag."""
        httpx.post(f"{self.control}/feed/{quote(feed, safe='')}", timeout=30).raise_for_status()

    @staticmethod
    def stop() -> None:
        subprocess.run([_HERE / "stop.sh"], check=True, timeout=60)
