"""The entry point of the command `soul`, and the error handling of all commands.

The exit codes are those of `soul/exit_codes.py`. With `--json`, an error is written as JSON too:
`{"error": …, "remedy": …}` on standard output.
"""

import os
import sys
from io import TextIOWrapper

from common.version import __version__
from soul.exit_codes import ExitCode, exit_code_of


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    os.umask(0o077)  # no other user may read the files it writes, whatever the umask of the shell
    if sys.argv[1:] == ["--version"]:
        # NOTE(self): scripts ask for this often, so it answers before anything is imported.
        sys.stdout.write(f"soul {__version__}\n")
        return
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes a quarter of reading settings
    # NOTE(self): None marks a module as not installed. httpx imports the first for its own command line, structlog the
    # second for coloured tracebacks; both would load libraries that nothing here uses.
    for module in ("httpx._main", "rich.traceback"):
        sys.modules[module] = None  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command in this process and return its exit code."""
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    try:
        return _answer(arguments, as_json=as_json)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        return _tell(error, as_json=as_json)


def _answer(arguments: list[str], *, as_json: bool) -> int:
    from soul.status_arguments import read_status_arguments  # noqa: PLC0415 - not needed by `--version`

    # NOTE(self): scripts ask for the status again and again, and loading the parser of all commands takes longer than
    # answering.
    if asked := read_status_arguments(arguments):
        from soul.commands.status import run_status  # noqa: PLC0415 - the same

        run_status(asked.home, as_json=asked.as_json, with_loops=asked.with_loops)
        return 0

    import typer  # noqa: PLC0415 - the same

    from soul.command_line import app, told  # noqa: PLC0415 - the same
    from soul.command_table import COMMANDS  # noqa: PLC0415 - the same
    from soul.terminal.output import write_error  # noqa: PLC0415 - the same

    old = " ".join(arguments[:2])
    if new := {"self held": "show", "self approve": "approve", "self reject": "reject"}.get(old):
        write_error(f"`soul {old}` is gone", f"Use `soul drafts {new} FILE`, such as SELF.md.", as_json=as_json)
        return ExitCode.USAGE
    if tuple(arguments) in {(), *((row.name,) for row in COMMANDS if row.commands)}:
        arguments = [*arguments, "--help"]
    try:
        code = app(arguments, prog_name="soul", standalone_mode=False)
    except typer.exceptions.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "soul")
        write_error(told(error), f"`{where} --help` shows what it takes.", as_json=as_json)
        return error.exit_code
    except typer.Abort:
        write_error("Interrupted", as_json=as_json)
        return ExitCode.INTERRUPTED
    return code if isinstance(code, int) else 0


def _tell(error: Exception, *, as_json: bool) -> int:
    """Print an error without secrets; return the exit code."""
    from common.errors import SettingsError, SoulError  # noqa: PLC0415 - only an error needs it
    from common.redact import Redactor  # noqa: PLC0415 - the same
    from soul.terminal.output import write_error, write_lines, write_mistakes  # noqa: PLC0415 - the same

    clean = Redactor().text
    if isinstance(error, SettingsError) and not as_json:
        write_mistakes(error.mistakes)
        return exit_code_of(error)
    if isinstance(error, SoulError):
        write_error(clean(str(error)), clean(error.remedy), as_json=as_json)
        return exit_code_of(error)

    import traceback  # noqa: PLC0415 - the same

    # NOTE(self): a bug of ours. The traceback may quote untrusted text, so it is cleaned and printed like other text.
    write_lines(*clean("".join(traceback.format_exception(error))).splitlines(), to=sys.stderr)
    if as_json:
        write_error(clean(f"Internal error: {type(error).__name__}: {error}"), as_json=True)
    return ExitCode.FAILED


if __name__ == "__main__":
    main()
