"""The command `soul`: the entry point, and what every command's end has in common.

Exit codes: 0 done, 1 something is wrong and the owner must act, 2 wrong usage, 130 interrupted. What goes wrong under
`--json` is told as JSON too: `{"error": …, "remedy": …}` on standard output.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from common.version import __version__

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        # NOTE(self): asked often by scripts, so it answers before anything is imported.
        sys.stdout.write(f"soul {__version__}\n")
        return
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them costs a quarter of reading settings
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command in this process and return its exit code."""
    import traceback  # noqa: PLC0415 - after the quick way out

    import typer  # noqa: PLC0415 - the same

    from common.errors import SoulError, UsageError  # noqa: PLC0415 - the same
    from common.redact import Redactor  # noqa: PLC0415 - the same
    from soul.commands import app  # noqa: PLC0415 - the same
    from soul.terminal.output import write_error, write_lines  # noqa: PLC0415 - the same

    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    clean = Redactor().text
    if tuple(arguments) in {(), *((group.name,) for group in app.registered_groups)}:
        arguments = [*arguments, "--help"]
    try:
        code = app(arguments, prog_name="soul", standalone_mode=False)
    except SoulError as error:
        write_error(clean(str(error)), clean(error.remedy), as_json=as_json)
        return USAGE if isinstance(error, UsageError) else FAILED
    except typer.exceptions.TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "soul")
        message = error.format_message().replace("Value error, ", "")
        write_error(message, f"`{where} --help` shows what it takes.", as_json=as_json)
        return error.exit_code
    except typer.Abort:
        write_error("Interrupted", as_json=as_json)
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        # NOTE(self): a fault of ours; the traceback may quote anybody, so it goes the same way as all other text.
        write_lines(*clean("".join(traceback.format_exception(error))).splitlines(), to=sys.stderr)
        if as_json:
            write_error(clean(f"Internal error: {type(error).__name__}: {error}"), as_json=True)
        return FAILED
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
