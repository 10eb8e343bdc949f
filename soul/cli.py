"""The command `soul`: the entry point, and what every command's end has in common.

Exit codes: 0 done, 1 something is wrong and the owner must act, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys

from common.version import __version__

FATAL, INTERRUPTED = 1, 130


def main() -> None:
    """Run the command that the arguments name."""
    if sys.argv[1:] == ["--version"]:
        # NOTE(self): asked often by scripts, so it answers before anything is imported.
        sys.stdout.write(f"soul {__version__}\n")
        return
    from common.errors import SoulError  # noqa: PLC0415 - after the quick way out
    from common.redact import Redactor  # noqa: PLC0415 - the same
    from soul.commands import app  # noqa: PLC0415 - the same

    try:
        app()
    except SoulError as error:
        clean = Redactor().text
        sys.stderr.write(f"✗ {clean(str(error))}\n")
        if error.remedy:
            sys.stderr.write(f"  → {clean(error.remedy)}\n")
        sys.exit(FATAL)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
