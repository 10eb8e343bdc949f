"""`soul status`: shows the status file, and whether the SOUL is awake."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from common.clock import SystemClock, is_timezone
from common.constants import TEXT_MAX_BYTES
from common.env_file import given
from common.errors import SoulError
from common.files import read_bounded
from common.wording import counted, counts_text, deed, part_note, told_reason, waiting_text
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal import rows
from modules.runtime.sleep_note import SLEEP, process_mark, read_note
from modules.services.outbox.departures import Departure, anything_waits, told
from soul.commands.waking import moved_away
from soul.terminal.output import printable, visible, write_answer
from soul.terminal.wording import doing, loop_name, moment, told_line, troubles_text

_Fits = Callable[[Any], bool]
_DEPTH_MAX = 8


def fitting(raw: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields with valid values, and the names of the others. An unknown field may hold anything.

    No field may be nested deeper than a status is, since the JSON reader goes deeper than the writer.
    """
    kept = {name: value for name, value in raw.items() if _is_flat(value) and _FIELDS.get(name, _anything)(value)}
    return kept, tuple(name for name in raw if name not in kept)


def _anything(_: object) -> bool:
    return True


def _text(value: object) -> bool:
    return isinstance(value, str)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _or_nothing(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


def _list_of(fits: _Fits) -> _Fits:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _each(fits: _Fits) -> _Fits:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _record(**fields: _Fits) -> _Fits:
    """Return a check for an object that has all of these fields; it may have others."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and fits(value[name]) for name, fits in fields.items())
    )


def _is_flat(value: object, depth: int = _DEPTH_MAX) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_is_flat(item, depth - 1) for item in value.values())
    return not isinstance(value, list) or (depth > 0 and all(_is_flat(item, depth - 1) for item in value))


_FIELDS: Mapping[str, _Fits] = {
    "handle": _or_nothing(_text),
    "mode": _text,
    "updatedAt": _text,
    "counts": _each(_count),
    "waits": _each(_count),
    "schedules": _list_of(_record(number=_count, what=_text, due=_text)),
    "conversations": _record(active=_count, concluded=_count),
    "rituals": _list_of(
        _record(
            name=_text,
            workspace=_text,
            role=_text,
            nextAt=_or_nothing(_text),
            day=_or_nothing(_text),
            thread=_text,
            part=_text,
            note=_text,
            artefact=_text,
        )
    ),
    "nextExpressionSource": _text,
    "cachedShare": _or_nothing(_share),
    "promptNotes": _list_of(_text),
    "lastDecision": _or_nothing(_record(at=_text, summary=_text, reason=_text)),
    "decisions": _list_of(_record(at=_text, summary=_text, reason=_text)),
    "troubles": _list_of(_record(service=_text, what=_text, until=_or_nothing(_text))),
    "loops": _list_of(_record(name=_text, nextAt=_or_nothing(_text), lastOutcome=_text)),
    "room": _or_nothing(_record(status=_text, url=_text, peers=_list_of(_text))),
    "growth": _record(
        open=_count,
        changes=_list_of(_record(at=_text, version=_text, reason=_text, learned=_text, diff=_list_of(_text))),
        friction=_list_of(_record(description=_text, count=_count)),
    ),
    "watched": _list_of(_record(repo=_text, url=_text, requested=lambda value: isinstance(value, bool))),
    "commitments": _list_of(_record(what=_text, type=_text, status=_text)),
}


@dataclass(frozen=True, slots=True)
class HomeSettings:
    """The SOUL's name, its `.memory` folder (None: in its home), and its owner's time zone ("": the machine's)."""

    agent_name: str
    memory_dir: Path | None
    soul_timezone: str


def load_home_settings(home: Path) -> HomeSettings:
    """Read these settings from `<home>/.env` and the environment, and no others.

    In place of a missing name stands the folder, and an invalid time zone counts as not set.

    Raises:
        ConfigError: there is no SOUL in `home`.

    """
    values = given(home).values
    name, folder, timezone = values.get("agent_name"), values.get("memory_dir"), values.get("soul_timezone", "")
    if name is None:
        from common.settings import read_settings  # noqa: PLC0415 - takes time to load, and is rarely needed

        read_settings(home)
    return HomeSettings(
        name or str(home.absolute()), Path(folder) if folder else None, timezone if is_timezone(timezone) else ""
    )


_TROUBLES_SHOWN, _LEAVING_SHOWN = 3, 3
_UNWATCHED = "it fell asleep, and `soul up`, which would wake it, has ended"
_WITHOUT_END = {
    marks.RESTORED: "restored from a backup of then",
    marks.RUNNING: marks.KILLED,
}
"""Why the SOUL is not awake, by the mark in a home whose last run recorded no end."""


def run_status(root: Path, *, as_json: bool, with_loops: bool = False) -> None:
    """Print the status; `with_loops`, also the loops and all else. Raises `ConfigError` if there is no home."""
    settings = load_home_settings(root)
    status = look(Home.at(root, settings.memory_dir))
    lines = status_lines(settings.agent_name, status, settings.soul_timezone, with_loops=with_loops)
    write_answer(status, lines, as_json=as_json)


def look(home: Home) -> dict[str, Any]:
    """Return the status file with the current `standing`, `drafts` and `leaving`, also if the SOUL is not awake.

    `leaving` are the acts that wait longer than a minute, with when they leave and why not sooner.
    `ended` is why the SOUL is not awake, if known: `at`, `why`, `remedy` ("" if the owner ended it).
    `refused` is what the next start refuses, if the SOUL is not awake: `error`, `remedy`.
    `asleep` is since when and until when it sleeps (`SleepNote`); None if it does not, or nothing would wake it.
    `burnIn` is the trial of a version (`HomeProgram.fields`); None without one.
    `moved` is when and into which file the home was moved away; "" if it was not.
    """
    standing, status = Control(home.memory).standing().fields(), read_status(home)
    ended = None if status["awake"] else _end(home)
    note = None if status["awake"] else read_note(home.memory)
    if note and note.kept_by and note.kept_by != process_mark(note.kept_by.partition(" ")[0]):
        ended, note = {"at": note.asleep_since, "why": _UNWATCHED, "remedy": ""}, None
    asleep = asdict(note) if note else None
    return {
        **status,
        "standing": standing,
        **_outbox(home),
        "ended": ended,
        "refused": [] if status["awake"] else _refused(home),
        "asleep": asleep,
        "moved": moved_away(home),
        "burnIn": _burn_in(home),
    }


def read_status(home: Home) -> dict[str, Any]:
    """Return the status file with `awake` and `pid`: whether a process holds the home, and which.

    `leftOut` names the fields with invalid values, if there are any. Raises `SoulError` if the file cannot be read.
    """
    pid = lock_holder(home)
    try:
        status = json.loads(read_bounded(home.status, TEXT_MAX_BYTES).decode())
    except FileNotFoundError:
        status = {}
    except (OSError, RecursionError) as error:
        raise SoulError(
            f"{home.status} cannot be read: {error}", remedy="It is rewritten while the SOUL runs."
        ) from None
    except ValueError as error:
        raise SoulError(
            f"{home.status} is not valid JSON: {error}", remedy="It is rewritten while the SOUL runs."
        ) from None
    if not isinstance(status, dict):
        raise SoulError(f"{home.status} does not hold a JSON object", remedy="It is rewritten while the SOUL runs.")
    kept, left_out = fitting(status)
    told = {"leftOut": list(left_out)} if left_out else {}
    return {**kept, **told, "awake": pid is not None, "pid": pid}


def status_lines(name: str, status: dict[str, Any], timezone: str = "", *, with_loops: bool = False) -> list[str]:
    """Return the status for a terminal: a headline and a few lines; `with_loops`, all that is known.

    Times are in `timezone`, or in that of this machine.
    """
    lines = [_headline(name, status, timezone), *_left_out(status), *end_lines(status, timezone)]
    lines += [_trial(trial, timezone)] if (trial := status.get("burnIn")) else []
    lines += _life(status, timezone)
    return [*lines, *_details(status, timezone)] if with_loops else lines


def _headline(name: str, status: dict[str, Any], timezone: str) -> str:
    who = f"{name} (@{status['handle']})" if status.get("handle") else name
    if "counts" not in status and not status.get("ended"):
        state = "waking up" if status["awake"] else "not awake, and has not lived here yet"
    elif status["awake"]:
        state = f"awake, {doing(status.get('mode', 'idle'))}".rstrip(", ")
    elif asleep := status.get("asleep"):
        since, until = moment(asleep["asleep_since"], timezone), moment(asleep["wake_at"], timezone)
        state = f"asleep since {since}, until {until} or until something comes for it"
    else:
        state = "not awake"
    if reasons := status["standing"]["reasons"]:
        return f"{who} is {state}; {'; '.join(reasons)}: nothing public leaves until `soul resume`"
    if status["awake"] and (troubles := troubles_text(status, timezone)):
        return f"{who} is {state}; {'; '.join(troubles)}"
    return f"{who} is {state}" + (" and idle" if state == "awake" else "")


def end_lines(status: dict[str, Any], timezone: str) -> list[str]:
    """Return lines on why the SOUL is not awake, how to go on, and what the next start refuses."""
    if status.get("moved"):
        moved = f"  was moved {visible(status['moved'])}, and lives where it was restored"
        return [moved, "    → If this home is to live on instead: `soul run --take-over`."]
    ended = status.get("ended")
    told = [(visible(one["error"]), visible(one["remedy"])) for one in status.get("refused", ())]
    refused = list[str]()
    for remedy, of in groupby(told, itemgetter(1)):
        refused += [*(f"  ✗ {error}" for error, _ in of), f"    → {remedy}"]
    if status["awake"] or status.get("asleep") or not ended:
        return refused
    when = moment(ended["at"], timezone)
    if not ended["remedy"]:
        return [f"  ended at {when}: {visible(ended['why'])}{'' if refused else '; `soul run` goes on'}", *refused]
    remedy = visible(ended["remedy"])
    after = "" if "`soul run`" in remedy else " Then `soul run`."
    return [f"  ended at {when}: {visible(ended['why'])}", f"    → {remedy}{after}", *refused]


def _refused(home: Home) -> list[dict[str, str]]:
    from soul.commands.findings import refused_at_start  # noqa: PLC0415 - takes time to load

    return refused_at_start(home)


def _life(status: dict[str, Any], timezone: str) -> list[str]:
    """Return lines on today's counts, what waits, the room, open commitments, and the last decision."""
    if "counts" not in status:
        return _waiting(status, timezone)
    last = status.get("lastDecision")
    process = f", process {status['pid']}{_why_awake(status)}" if status["awake"] else ""
    as_of = moment(status.get("updatedAt", "a time unknown"), timezone)
    lines = [f"  as of {as_of}{process}; today: {counts_text(status['counts'])}"]
    lines += [*_waiting(status, timezone), *_company(status)]
    if last:
        why = told_reason(last["reason"])
        what = f"{told_line(last['summary'])}{f' ({why})' if why else ''}"
        lines.append(f"  last decision at {moment(last['at'], timezone)}: {what}")
    return lines


def _why_awake(status: dict[str, Any]) -> str:
    """Return what keeps the SOUL from sleeping; "" if no watcher would wake it."""
    told = next((loop["lastOutcome"] for loop in status.get("loops", ()) if loop["name"] == SLEEP), "")
    return f", awake because {printable(told)}" if told else ""


def _waiting(status: dict[str, Any], timezone: str) -> list[str]:
    """Return lines on what waits, documents, the open proposal, the next schedule, and when acts leave."""
    documents = status.get("documents", ())
    waits = waiting_text({**status.get("waits", {}), "drafts": len(status["drafts"]) + len(documents)})
    lines = [*([f"  waits: {waits}"] if waits else []), *(f"  {one}" for one in documents)]
    if proposal := (status.get("growth") or {}).get("proposal"):
        lines.append(f"  getting better: {printable(proposal)}")
    lines += [f"  scheduled next: {printable(one['what'])}" for one in status.get("schedules", ())[:1]]
    return [*lines, *(f"  {line}" for line in leaving_lines(status, timezone))]


def leaving_lines(status: dict[str, Any], timezone: str) -> list[str]:
    """Return a line for each of the first acts that wait longer than a minute: when it leaves, and why not sooner."""
    now = SystemClock().now()
    return [
        f"{one['act']} {told(Departure(one['at'], printable(one['why'])), now, timezone)}"
        for one in status.get("leaving", ())[:_LEAVING_SHOWN]
    ]


def _company(status: dict[str, Any]) -> list[str]:
    """Return one line on the room and the open commitments, without fields that an older version did not write."""
    room, commitments, told = status.get("room"), status.get("commitments", []), []
    if room and status["awake"] and room["status"] in {"joined", "draining"}:
        names = ", ".join(printable(name) for name in room["peers"])
        told.append(f"in the room {room['url']}" + (f" with {names}" if names else ", alone"))
        told += [printable(room["silence"])] if room.get("silence") else []
    if commitments:
        told.append(f"{counted(len(commitments), 'commitment')} open")
    return [f"  {'; '.join(told)}"] if told else []


def _details(status: dict[str, Any], timezone: str) -> list[str]:
    """Return the remaining lines: commitments, watched repositories, cache, prompt, frictions, rituals and loops."""
    lines = [
        f"  commitment: {printable(one['what'])} ({deed(one['type'])}, {one['status']})"
        for one in status.get("commitments", [])
    ]
    lines += [f"  watches {_watched(one)}" for one in status.get("watched", ())]
    if status.get("cachedShare") is not None:
        lines.append(f"  {status['cachedShare']:.0%} of what the model was sent lately was found in its cache")
    lines += [f"  no room in the prompt: {part_note(note)}" for note in status.get("promptNotes", ())]
    lines += _growth(status.get("growth"))
    lines += [_ritual(one) for one in status.get("rituals", ()) if one["nextAt"]]
    return lines + [_loop(loop, timezone) for loop in status.get("loops", ()) if status["awake"]]


def _watched(one: dict[str, Any]) -> str:
    repo = printable(one["repo"])
    return f"{repo}, because work was asked for there; `/unwatch {repo}` ends that" if one["requested"] else repo


def _left_out(status: dict[str, Any]) -> list[str]:
    names = status.get("leftOut")
    return [f"  left out, since status.json holds something else there: {', '.join(names)}"] if names else []


def _loop(loop: dict[str, Any], timezone: str) -> str:
    when = moment(loop["nextAt"], timezone) if loop["nextAt"] else "now"
    outcome = loop["lastOutcome"]
    ran = loop.get("lastRanAt")
    if loop["name"] == "heartbeat" and outcome and isinstance(ran, str):
        outcome = f"at {moment(ran, timezone)}: {outcome}"  # its counts are older than those above
    return f"  {loop_name(loop['name']):<18}  {when:<16}  {outcome}"


def _growth(growth: dict[str, Any] | None) -> list[str]:
    """Return a line on frictions; none if there are none, or an older version did not write them."""
    troubles = growth["friction"][:_TROUBLES_SHOWN] if growth else []
    told = ", ".join(printable(f"{one['description']} ({one['count']})") for one in troubles)
    return [f"  trouble within a week: {told}"] if told else []


def _ritual(ritual: dict[str, Any]) -> str:
    """Return a line on when a ritual opens next, in the SOUL's local time, as it is stored."""
    role = "opens" if ritual["role"] == "initiator" else "is expected"
    told = printable(f"ritual: {ritual['name']} {role} {ritual['nextAt'].replace('T', ' ')}")
    return f"  {told}"


def _end(home: Home) -> dict[str, str] | None:
    """Return when and why the last life ended, with a remedy; None if the journal does not say."""
    try:
        with reading(home.database) as connection:
            for mark, why in _WITHOUT_END.items():
                if marks.get(connection, mark):
                    return {"at": rows.newest_at(connection), "why": why, "remedy": ""}
            entry = rows.last_end(connection)
    except SoulError:
        return None
    return entry and {"at": entry["at"], "why": entry["summary"], "remedy": entry["reason"]}


def _trial(told: dict[str, Any], timezone: str) -> str:
    """Return a line for a version on trial, or one that was put back."""
    if told["bad"]:
        return f"  version {told['version']} was put back: {told['bad']}; version {told['before']} is to live here"
    lived = f"{told['livedHours']:.1f} of {told['hours']:.0f} hours lived, until {moment(told['until'], timezone)}"
    return f"  version {told['version']} is on trial: {lived} or later; then it stays, or {told['before']} comes back"


def _burn_in(home: Home) -> dict[str, object] | None:
    with suppress(SoulError), reading(home.database) as connection:
        if '"before": {' in marks.get(connection, marks.PROGRAM):
            from modules.services.burn_in import current  # noqa: PLC0415 - takes time to load, and is rare

            return known.fields(SystemClock().now()) if (known := current(connection)) else None
    return None


def _outbox(home: Home) -> dict[str, list[dict[str, Any]]]:
    """Return the drafts, and when acts leave; none if the database cannot be read: it is new, or of another version."""
    nothing: dict[str, list[dict[str, Any]]] = {"drafts": [], "leaving": []}
    try:
        with reading(home.database) as connection:
            if not anything_waits(connection):
                return nothing
            from modules.services.explanation import drafts  # noqa: PLC0415 - the same
            from modules.services.outbox.approval import held  # noqa: PLC0415 - takes time to load, and is rare

            now, waiting = SystemClock().now(), drafts.in_words(connection, held(connection))
            return {
                "drafts": [drafts.draft_fields(draft, now) for draft in waiting],
                "leaving": drafts.leaving_fields(connection),
            }
    except SoulError:
        return nothing
