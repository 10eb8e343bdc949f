"""`soul status`: reads the status file, and says whether anybody is awake."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.settings import load_settings
from modules.home import Home, lock_holder


def run_status(root: Path, *, as_json: bool) -> None:
    """Print it. Raises `ConfigError` when there is no home."""
    settings = load_settings(root)
    home = Home.at(root, settings.memory_dir)
    status = read_status(home)
    if as_json:
        sys.stdout.write(json.dumps(status, ensure_ascii=False, indent=2) + "\n")
        return
    sys.stdout.write("\n".join(_lines(settings.agent_name, status)) + "\n")


def read_status(home: Home) -> dict[str, Any]:
    """The status file with `awake`: whether a process really holds the home."""
    pid = lock_holder(home)
    try:
        status = json.loads(home.status.read_text(encoding="utf-8"))
    except FileNotFoundError:
        status = {}
    except ValueError as error:
        raise ConfigError(
            f"{home.status} is not valid JSON: {error}", remedy="It is rewritten while the SOUL runs."
        ) from None
    return {**status, "awake": pid is not None, "pid": pid}


def _lines(name: str, status: dict[str, Any]) -> list[str]:
    if "counts" not in status:
        return [f"{name} is {'waking up' if status['awake'] else 'not awake, and has not lived here yet'}"]
    counts, last = status["counts"], status.get("lastDecision")
    where = f"awake (pid {status['pid']}), {status['mode']}" if status["awake"] else "not awake"
    lines = [
        f"{name} (@{status['handle']}) is {where}; this is how things stood at {status['updatedAt']}",
        "  " + ", ".join(f"{count} {what}" for what, count in counts.items()),
        f"  {status['pendingNotifications']} posts waiting to be met, {status['pendingIntents']} acts on their way out",
    ]
    if last:
        lines.append(f"  last decision at {last['at']}: {last['summary']} ({last['reason']})")
    if status["awake"]:
        lines += [
            f"  {loop['name']:<18} next {loop['nextAt'] or 'now'}  {loop['lastOutcome']}" for loop in status["loops"]
        ]
    return lines
