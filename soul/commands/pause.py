"""`soul pause` and `soul resume`: stop all public acts or allow them again, whether the SOUL is awake or not."""

from pathlib import Path
from typing import Annotated

import typer

from modules.runtime.control import COLLECTION, Control, Standing, forget_starts
from modules.runtime.home import Home, lock_holder
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_answer


def run_pause(
    root: Path,
    reason: Annotated[list[str] | None, typer.Argument(metavar="REASON", help="The reason.")] = None,
    *,
    as_json: bool = False,
) -> None:
    """Stop all public acts from now on. Raises `StorageError`."""
    _, home = at_hand(root)
    stands = pause(home, " ".join(reason or ()))
    when = "at once" if lock_holder(home) is not None else "from its next start"
    told = f"{stands};" if stands else f"Paused, {when}:"
    lines = [f"{told} nothing public leaves until `soul resume`"]
    write_answer(Control(home.memory).standing().fields(), lines, as_json=as_json)


def pause(home: Home, reason: str) -> str:
    """Pause the SOUL; return "", or a line on the pause if it was paused already. Raises `StorageError`."""
    control = Control(home.memory)
    before = control.pause_reason()
    control.pause(reason)
    if before is None:
        return ""
    after = control.pause_reason() or ""
    if after == before:
        return f"Already paused: {before}" if before else "Already paused"
    return f"Already paused; the reason is now: {after}" + (f" (it was: {before})" if before else "")


def run_resume(root: Path, *, as_json: bool = False) -> bool:
    """End the pause; return False if something else still stops public acts. Raises `StorageError`."""
    _, home = at_hand(root)
    before = Control(home.memory).standing()
    standing = resume(home)
    write_answer(standing.fields(), resumed_lines(standing, before), as_json=as_json)
    return standing.may_act


def resume(home: Home) -> Standing:
    """End the pause and safe mode, and reset the count of starts; return what still stops public acts."""
    forget_starts(home.memory)
    return Control(home.memory).resume()


def resumed_lines(standing: Standing, before: Standing) -> list[str]:
    """Return what to tell the owner after a resume; `before` is the standing before it."""
    if before.may_act:
        return ["Nothing was paused: public acts may leave"]
    if standing.may_act:
        return ["Going on: public acts may leave"]
    return [
        f"Still {standing}",
        f"  → Delete the {COLLECTION} record in your own Bluesky repo; it is read again within a minute.",
    ]
