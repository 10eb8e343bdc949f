"""`soul status`: reads the status file, and says whether anybody is awake."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from common.clock import SystemClock
from common.errors import ConfigError, SoulError
from common.settings import load_settings
from modules.control import Control
from modules.database import reading
from modules.foreign_text import one_line
from modules.home import Home, lock_holder
from modules.outbox.approval import held
from soul.drafts import as_json


def run_status(root: Path, *, as_json: bool) -> None:
    """Print it. Raises `ConfigError` when there is no home."""
    settings = load_settings(root)
    status = look(Home.at(root, settings.memory_dir))
    if as_json:
        sys.stdout.write(json.dumps(status, ensure_ascii=False, indent=2) + "\n")
        return
    sys.stdout.write("\n".join(status_lines(settings.agent_name, status)) + "\n")


def look(home: Home) -> dict[str, Any]:
    """The status file; what the owner decides, `standing` and `drafts`, as it is now, also while nobody is awake."""
    standing = Control(home.memory).standing()
    said = {"paused": standing.paused, "safeMode": standing.safe_mode, "reasons": list(standing.reasons)}
    return {**read_status(home), "standing": said, "drafts": _drafts(home)}


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


def status_lines(name: str, status: dict[str, Any]) -> list[str]:
    """The same for a terminal."""
    return [*_life(name, status), *_owner_control(status)]


def _life(name: str, status: dict[str, Any]) -> list[str]:
    if "counts" not in status:
        return [f"{name} is {'waking up' if status['awake'] else 'not awake, and has not lived here yet'}"]
    counts, last = status["counts"], status.get("lastDecision")
    where = f"awake (pid {status['pid']}), {status['mode']}" if status["awake"] else "not awake"
    lines = [
        f"{name} (@{status['handle']}) is {where}; this is how things stood at {status['updatedAt']}",
        "  " + ", ".join(f"{count} {what}" for what, count in counts.items()),
        f"  {status['pendingNotifications']} posts waiting to be met, {status['pendingIntents']} acts on their way out",
    ]
    lines += _room(status)
    if status.get("cachedShare") is not None:
        lines.append(f"  {status['cachedShare']:.0%} of what the model was sent lately was found in its cache")
    lines += [f"  no room in the prompt: {note}" for note in status.get("promptNotes", ())]
    if last:
        lines.append(f"  last decision at {last['at']}: {last['summary']} ({last['reason']})")
    if status["awake"]:
        lines += [
            f"  {loop['name']:<18} next {loop['nextAt'] or 'now'}  {loop['lastOutcome']}" for loop in status["loops"]
        ]
    return lines


def _room(status: dict[str, Any]) -> list[str]:
    """Where it talks, and what it promised; nothing of what an older version did not write."""
    room, promises = status.get("room"), status.get("promises", [])
    lines = []
    if room and room["status"] in {"joined", "draining"}:
        names = ", ".join(one_line(name) for name in room["peers"])
        lines.append(f"  in the room {room['url']}" + (f" with {names}" if names else ", alone"))
    lines += [f"  promised: {one_line(one['what'])} ({one['type']}, {one['status']})" for one in promises]
    return lines


def _owner_control(status: dict[str, Any]) -> list[str]:
    lines = [f"  {reason}: nothing public leaves (`soul resume`)" for reason in status["standing"]["reasons"]]
    if status["drafts"]:
        lines.append(f"  {len(status['drafts'])} acts wait for your yes (`soul drafts`)")
    return lines


def _drafts(home: Home) -> list[dict[str, Any]]:
    """None of them where the database cannot say: it is not there yet, or of another version."""
    try:
        with reading(home.database) as connection:
            return [as_json(intent, SystemClock().now()) for intent in held(connection)]
    except SoulError:
        return []
