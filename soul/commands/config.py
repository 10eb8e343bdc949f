"""`soul config`: shows the settings of a home and their meaning; changes them only to values `soul run` accepts."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import SecretStr

from common.env_file import env_file, given, with_values
from common.errors import ConfigError, SettingsError, UsageError
from common.files import storage_error, write_atomic
from common.settings import KNOWN, Settings, explained_by, read_settings, settings_of, unknown_among
from common.wording import counted
from soul.commands.at_hand import examined_settings, settings_to_run
from soul.commands.handles import resolve
from soul.resources import template
from soul.terminal.output import visible, write_json, write_lines, write_mistakes

_HIDDEN = "(hidden)"
_OWNER, _OWNER_DID = "OWNER_BLUESKY_SOCIAL_HANDLE", "OWNER_BLUESKY_SOCIAL_HANDLE_DID"
_IN_URL = re.compile(r"(?<=token=)[^&\s]{1,500}|(?<=://)[^/@\s]{1,500}(?=@)")
_SHOWN = re.compile(r"#?([A-Z][A-Z_]{1,60})=(.*)")
_NEXT_START = "a SOUL that runs takes it at its next start"


@dataclass(frozen=True, slots=True)
class Explained:
    """A setting as `.env.example` explains it, under a heading; `default` is "" if there is none."""

    heading: str
    default: str
    meaning: str


def run_config_get(
    root: Path,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The setting; without it, all are listed.")] = "",
    *,
    as_json: bool,
) -> None:
    """Print one setting with its meaning, or all. Raises `ConfigError` if there is no SOUL, or `UsageError`."""
    wanted = _known(name) if name else ""
    rows = [row for row in setting_rows(root) if not wanted or row["name"] == wanted]
    if as_json:
        write_json(rows[0] if wanted else rows)
    elif wanted:
        (row,) = rows
        write_lines(_line({**row, "default": ""}), f"  default: {row['default'] or 'none'}", f"  {row['meaning']}")
    else:
        write_lines(*map(_line, rows), "`soul config get NAME` tells what one means.")


def setting_rows(root: Path) -> list[dict[str, Any]]:
    """Return all settings in the order of `.env.example`, each with its value, default, heading and meaning.

    Raises `ConfigError` if there is no SOUL in `root`.
    """
    read_settings(root)
    values, explained = given(root).values, explained_settings(template(".env.example"))
    return [
        {
            "name": name,
            "value": _shown(name, values.get(name.lower(), "")),
            "default": one.default,
            "heading": one.heading,
            "meaning": one.meaning,
        }
        for name, one in explained.items()
    ]


def run_config_set(
    root: Path,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The setting.")],
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="The new value; '' restores the default. Without it, you are asked."),
    ] = None,
) -> None:
    """Write one setting; without a value, ask for it, and do not echo a secret.

    Raises:
        ConfigError: the value is wrong.
        UsageError: there is no such setting, or no value.

    """
    known = _settable(root, name)
    if value is None:
        value = _asked_for(known)
    did = _did_of(root, value) if known == _OWNER else ""
    remaining = change_setting(root, known, value, {_OWNER_DID: did} if did else {})
    write_lines(f"{known} is set in {env_file(root)}; {_NEXT_START}.")
    if did:
        write_lines(f"{_OWNER_DID} is set to {did}, the DID of that account.")
    elif known == _OWNER:
        write_lines(f"Its DID could not be looked up: your SOUL obeys {_OWNER_DID}, so set that too.", to=sys.stderr)
    if remaining:
        write_lines(f"`soul run` refuses {counted(len(remaining), 'other setting')}:", to=sys.stderr)
        write_mistakes(remaining)


def _asked_for(name: str) -> str:
    """Return what the owner types, or else the next line of standard input. Raises `UsageError` at its end."""
    if sys.stdin.isatty():
        return str(typer.prompt(name, default="", hide_input=_is_secret(name), show_default=False))
    if not (line := sys.stdin.readline()):
        raise UsageError(f"{name} has no value here", remedy="Give VALUE, or run it in a terminal.")
    return line.rstrip("\r\n")


def _did_of(root: Path, handle: str) -> str:
    """Return the DID of a handle from the SOUL's service; "" if there is none, or the environment sets the DID."""
    if _OWNER_DID in os.environ or any(one.setting == _OWNER for one in settings_of({_OWNER.lower(): handle})[1]):
        return ""
    return resolve(read_settings(root)[0].atproto_service_url, handle.strip().removeprefix("@")) or ""


def change_setting(root: Path, name: str, value: str, more: Mapping[str, str] | None = None) -> list[ConfigError]:
    """Write a valid setting, and `more` that follow from it; return the mistakes in other settings.

    Raises the same errors as `run_config_set`.
    """
    known, before = _settable(root, name), _content(root)
    # NOTE(self): bytes that are not UTF-8 are kept as they are, and are reported among the mistakes.
    text = before.decode("utf-8-sig", errors="surrogateescape")
    content = with_values(text, {known: value, **(more or {})}).encode(errors="surrogateescape")
    standing = {str(mistake) for mistake in examined_settings(root, before)[1]}
    mistakes = examined_settings(root, content)[1]
    wrong = [one for one in mistakes if one.setting == known] or [one for one in mistakes if str(one) not in standing]
    if wrong:
        told = f"Nothing was written; `soul config get {known}` explains it."
        general = explained_by(root, known)
        mended = [ConfigError(str(one), remedy=told if one.remedy == general else one.remedy) for one in wrong]
        raise SettingsError(mended)
    _write(root, content)
    return mistakes


def run_config_check(root: Path) -> None:
    """Print that all settings are right. Raises `SettingsError` with every mistake if not."""
    settings_to_run(root)
    write_lines("All settings are right.")


def run_config_edit(root: Path) -> None:
    """Let the owner edit the settings; write valid ones. Raises `SettingsError` for mistakes without a terminal."""
    _refuse_pipe(root)
    read_settings(root)
    before = _content(root)
    with tempfile.TemporaryDirectory(prefix="soul-config-") as folder:
        copy = Path(folder) / "settings.env"
        write_atomic(copy, before)
        while (content := edited_by_owner(copy)) != before:
            if not (mistakes := examined_settings(root, content)[1]):
                _write(root, content)
                write_lines(f"Wrote {env_file(root)}; {_NEXT_START}.")
                return
            if not sys.stdin.isatty():
                raise SettingsError(mistakes)
            write_mistakes(mistakes)
            if not confirmed("Nothing is written yet. Edit it again?", default=True):
                return
    write_lines("Nothing was changed.")


def confirmed(question: str, *, default: bool) -> bool:
    """Return whether the owner answers yes; ask again after anything but yes or no."""
    hint, usual = ("Y/n", "y") if default else ("y/N", "n")
    return bool(typer.prompt(f"{question} [{hint}]", default=usual, show_default=False, value_proc=_is_yes))


def _is_yes(answer: str) -> bool:
    word = answer.strip().lower()
    if word not in {"y", "yes", "n", "no"}:
        raise typer.BadParameter("Type y or n")
    return word.startswith("y")


def explained_settings(example: str) -> dict[str, Explained]:
    """Return each setting of `.env.example` with its default, and the comment and the heading above it."""
    explained: dict[str, Explained] = {}
    heading = ""
    words: list[str] = []
    is_fresh = True
    for line in example.splitlines():
        if shown := _SHOWN.fullmatch(line):
            explained[shown[1]] = Explained(heading, shown[2], " ".join(words))
            is_fresh = True
        elif line.startswith("# ---"):
            heading, is_fresh = line.strip("# -"), True
        elif line.startswith("# "):
            words = [line[2:]] if is_fresh else [*words, line[2:]]
            is_fresh = False
        else:
            is_fresh = True
    return explained


def is_number_or_choice(name: str) -> bool:
    """Return whether a setting is a number, a switch or a choice, not a text, address, path or secret."""
    return _is_plain(Settings.model_fields[name.lower()].annotation)


def choices_of(name: str) -> tuple[str, ...]:
    """Return the possible values of a switch or a choice; empty for any other setting."""
    if name not in KNOWN or not is_number_or_choice(name):
        return ()
    found = _choices(Settings.model_fields[name.lower()].annotation)
    return () if None in found else tuple(one for one in found if one)


def _choices(annotation: object) -> tuple[str | None, ...]:
    """Return the possible values of this type; None among them stands for any number."""
    parts = get_args(annotation)
    if annotation in {int, float}:
        return (None,)
    if annotation is bool:
        return "on", "off"
    if get_origin(annotation) is Literal:
        return tuple(str(one) for one in parts if one)
    if get_origin(annotation) is Annotated:
        return _choices(parts[0])
    return tuple(one for part in parts for one in _choices(part))


def _is_plain(annotation: object) -> bool:
    parts = get_args(annotation)
    if get_origin(annotation) is Literal:
        return any(parts)
    if get_origin(annotation) is Annotated:
        return _is_plain(parts[0])
    return all(map(_is_plain, parts)) if parts else annotation in {bool, int, float, NoneType}


def _known(name: str) -> str:
    upper = name.strip().upper()
    if upper in KNOWN:
        return upper
    (unknown,) = unknown_among([upper], prefixes=("",))
    raise UsageError(str(unknown), remedy="`soul config get` lists all settings.")


def _settable(root: Path, name: str) -> str:
    known = _known(name)
    _refuse_pipe(root)
    read_settings(root)
    if known in os.environ:
        raise UsageError(f"{known} is set in the environment, which wins over .env", remedy="Change it there.")
    return known


def _line(row: dict[str, Any]) -> str:
    default = f" (default: {row['default']})" if row["default"] else ""
    return visible(f"{row['name']}={row['value']}" if row["value"] else f"{row['name']} is not set{default}")


def _shown(name: str, value: str) -> str:
    if _is_secret(name) and value:
        return _HIDDEN
    return _IN_URL.sub(_HIDDEN, value)


def _is_secret(name: str) -> bool:
    return Settings.model_fields[name.lower()].annotation is SecretStr


def _refuse_pipe(root: Path) -> None:
    """Raise `UsageError` if the settings come through a pipe, since their secrets must stay off the disk."""
    file = env_file(root)
    if file.exists() and not file.is_file():
        raise UsageError(
            f"{file} is no regular file: nothing was changed", remedy="Change the value where that file gets it from."
        )


def _content(root: Path) -> bytes:
    file = env_file(root)
    try:
        return file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise storage_error(file, error) from error


def _write(root: Path, content: bytes) -> None:
    write_atomic(env_file(root).resolve(), content)


def edited_by_owner(copy: Path) -> bytes:
    """Open a file in the owner's editor, and return its content afterwards. Raises `UsageError` if the editor fails."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        code = subprocess.run([*editor, str(copy)], check=False).returncode  # noqa: S603 - the owner's own editor
    except OSError as error:
        raise UsageError(f"The editor {editor[0]} cannot be started: {error.strerror}", remedy="Set EDITOR.") from None
    if code:
        raise UsageError(f"The editor {editor[0]} ended with {code}: nothing was written", remedy="Set EDITOR.")
    return copy.read_bytes()
