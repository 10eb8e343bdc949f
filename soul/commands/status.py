"""`soul status`: reads the status file, and says whether anybody is awake."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.clock import SystemClock, is_timezone
from common.constants import TEXT_MAX_BYTES
from common.env_file import given
from common.errors import ConfigError, SoulError
from common.files import read_bounded
from common.wording import part_note, told_reason
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.services.outbox.waiting import waits_for_owner
from soul.status_file import fitting
from soul.terminal.output import printable, write_json, write_lines
from soul.terminal.wording import doing, loop_name, moment, told_line


@dataclass(frozen=True, slots=True)
class HomeSettings:
    """The SOUL's name, where its `.memory` lies (None: in its home), and its owner's time zone ("": the machine's)."""

    agent_name: str
    memory_dir: Path | None
    soul_timezone: str


def load_home_settings(home: Path) -> HomeSettings:
    """Read them from `<home>/.env` and the environment; what else stands there is not looked at.

    Without a name it is "", and a time zone that is none counts as not set.

    Raises:
        ConfigError: nobody lives in `home`, nor was one to live there.

    """
    values = given(home).values
    name, folder, timezone = values.get("agent_name"), values.get("memory_dir"), values.get("soul_timezone", "")
    if name is None:
        from common.settings import settings_at_hand  # noqa: PLC0415 - takes time to load, and is rarely needed

        settings_at_hand(home)
    return HomeSettings(name or "", Path(folder) if folder else None, timezone if is_timezone(timezone) else "")


_TROUBLES_SHOWN = 3


def run_status(root: Path, *, as_json: bool) -> None:
    """Print it. Raises `ConfigError` when there is no home."""
    settings = load_home_settings(root)
    status = look(Home.at(root, settings.memory_dir))
    if as_json:
        write_json(status)
        return
    write_lines(*status_lines(settings.agent_name, status, settings.soul_timezone))


def look(home: Home) -> dict[str, Any]:
    """The status file; what the owner decides, `standing` and `drafts`, as it is now, also while nobody is awake."""
    standing = Control(home.memory).standing().fields()
    return {**read_status(home), "standing": standing, "drafts": _drafts(home)}


def read_status(home: Home) -> dict[str, Any]:
    """The status file with `awake`: whether a process really holds the home.

    `leftOut` names the fields that hold what they may not, if there are any.
    """
    pid = lock_holder(home)
    try:
        status = json.loads(read_bounded(home.status, TEXT_MAX_BYTES).decode())
    except FileNotFoundError:
        status = {}
    except (OSError, RecursionError) as error:
        raise ConfigError(
            f"{home.status} cannot be read: {error}", remedy="It is rewritten while the SOUL runs."
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{home.status} is not valid JSON: {error}", remedy="It is rewritten while the SOUL runs."
        ) from None
    if not isinstance(status, dict):
        raise ConfigError(f"{home.status} does not hold a JSON object", remedy="It is rewritten while the SOUL runs.")
    kept, left_out = fitting(status)
    told = {"leftOut": list(left_out)} if left_out else {}
    return {**kept, **told, "awake": pid is not None, "pid": pid}


def status_lines(name: str, status: dict[str, Any], timezone: str = "") -> list[str]:
    """The same for a terminal, the most important first; times are those of `timezone`, or of this machine."""
    return [_headline(name, status, timezone), *_left_out(status), *_owner_control(status), *_life(status, timezone)]


def _headline(name: str, status: dict[str, Any], timezone: str) -> str:
    who = f"{name} (@{status['handle']})" if status.get("handle") else name
    if "counts" not in status:
        state = "waking up" if status["awake"] else "not awake, and has not lived here yet"
    elif status["awake"]:
        state = f"awake, {doing(status.get('mode', 'idle'))}".rstrip(", ")
    else:
        state = "not awake"
    if reasons := status["standing"]["reasons"]:
        return f"{who} is {state}; {'; '.join(reasons)}: nothing public leaves until `soul resume`"
    if troubles := _troubles(status, timezone):
        return f"{who} is {state}; {'; '.join(troubles)}"
    return f"{who} is {state}" + (" and idle" if state == "awake" else "")


def _troubles(status: dict[str, Any], timezone: str) -> list[str]:
    """What a SOUL that is awake waits for; times of an older day are told with their date."""
    if not status["awake"]:
        return []
    return [
        printable(one["what"]) + (f", until {moment(one['until'], timezone)}" if one["until"] else "")
        for one in status.get("troubles", ())
    ]


def _life(status: dict[str, Any], timezone: str) -> list[str]:
    if "counts" not in status:
        return []
    counts, last = status["counts"], status.get("lastDecision")
    process = f", process {status['pid']}" if status["awake"] else ""
    lines = [
        f"  as of {moment(status.get('updatedAt', 'a time unknown'), timezone)}{process}",
        "  " + ", ".join(f"{count:,} {what}" for what, count in counts.items()),
        (
            f"  {_count(status, 'pendingNotifications')} posts to answer, "
            f"{_count(status, 'pendingIntents')} acts on their way out"
        ),
    ]
    if waiting := status.get("ownerMessages"):
        lines.append(f"  {waiting} of your messages {'waits' if waiting == 1 else 'wait'} for an answer")
    lines += _room(status)
    if status.get("cachedShare") is not None:
        lines.append(f"  {status['cachedShare']:.0%} of what the model was sent lately was found in its cache")
    lines += [f"  no room in the prompt: {part_note(note)}" for note in status.get("promptNotes", ())]
    lines += _growth(status.get("growth"))
    lines += [_ritual(one) for one in status.get("rituals", ()) if one["nextAt"]]
    if last:
        what = f"{told_line(last['summary'])} ({told_reason(last['reason'])})"
        lines.append(f"  last decision at {moment(last['at'], timezone)}: {what}")
    if status["awake"]:
        lines += [_loop(loop, timezone) for loop in status.get("loops", ())]
    return lines


def _left_out(status: dict[str, Any]) -> list[str]:
    names = status.get("leftOut")
    return [f"  left out, since status.json holds something else there: {', '.join(names)}"] if names else []


def _count(status: dict[str, Any], name: str) -> str:
    return f"{status[name]:,}" if name in status else "an unknown number of"


def _loop(loop: dict[str, Any], timezone: str) -> str:
    when = moment(loop["nextAt"], timezone) if loop["nextAt"] else "now"
    outcome = loop["lastOutcome"]
    ran = loop.get("lastRanAt")
    if loop["name"] == "heartbeat" and outcome and isinstance(ran, str):
        outcome = f"at {moment(ran, timezone)}: {outcome}"  # its counts are older than those above
    return f"  {loop_name(loop['name']):<18}  {when:<16}  {outcome}"


def _room(status: dict[str, Any]) -> list[str]:
    """Return lines for the room and the open commitments; none for what an older version did not write."""
    room, commitments = status.get("room"), status.get("commitments", [])
    if not room and not commitments:
        return []
    from common.text.untrusted import one_line  # noqa: PLC0415 - takes time to load

    lines = []
    if room and room["status"] in {"joined", "draining"}:
        names = ", ".join(one_line(name) for name in room["peers"])
        lines.append(f"  in the room {room['url']}" + (f" with {names}" if names else ", alone"))
    lines += [f"  commitment: {one_line(one['what'])} ({one['type']}, {one['status']})" for one in commitments]
    return lines


def _growth(growth: dict[str, Any] | None) -> list[str]:
    """Return lines for what goes wrong again and again; none for what an older version did not write."""
    troubles = growth["friction"][:_TROUBLES_SHOWN] if growth else []
    told = ", ".join(f"{one['category']} in {loop_name(one['loop'])} ({one['count']})" for one in troubles)
    return [f"  trouble within a week: {told}"] if told else []


def _ritual(ritual: dict[str, Any]) -> str:
    """Return when a ritual opens next, in the local time of the SOUL, as it is stored."""
    role = "opens" if ritual["role"] == "initiator" else "is expected"
    return printable(f"  ritual: {ritual['name']} {role} {ritual['nextAt'].replace('T', ' ')}")


def _owner_control(status: dict[str, Any]) -> list[str]:
    count = len(status["drafts"])
    return [f"  {count} {'act waits' if count == 1 else 'acts wait'} for your yes (`soul drafts`)"] if count else []


def _drafts(home: Home) -> list[dict[str, Any]]:
    """None of them where the database cannot say: it is not there yet, or of another version."""
    try:
        with reading(home.database) as connection:
            if not waits_for_owner(connection):
                return []
            from modules.services.outbox.approval import held  # noqa: PLC0415 - takes time to load, and is rarely needed
            from soul.commands.draft_lines import as_json, with_answered  # noqa: PLC0415 - the same

            return [as_json(draft, SystemClock().now()) for draft in with_answered(connection, held(connection))]
    except SoulError:
        return []
