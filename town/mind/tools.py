"""Small commands, put together from their parts in `tools.yaml`: a program, its tests, and the plan for it. Pure.

What a request asks for is known only if each of its words is: "a word counter" is written, "a word counter with a web
page" is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]

_MAKEFILE = ".PHONY: test\ntest:\n\tpython3 -m unittest\n"
_MAIN = '''

def main(arguments):
    """Print the answer. Return 0, or 2 after a line about what cannot be used."""
    try:
{call}
    except (ValueError, OSError) as error:
        print(f"usage: python3 {name}.py {use}\\n{{error}}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''
_CALL = "        print(answer(arguments))\n"
_CALL_WITH_FILE = """        if not arguments:
            raise ValueError("needs a file")
        print(answer(Path(arguments[0]).read_text("utf-8-sig"), arguments[1:]))
"""
_TESTS = '''import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMMAND = Path(__file__).with_name("{name}.py")


def run(*arguments, text=None, folder=None):
    """Run the command in a folder, on a file with this text if there is one. Return its exit code and its output."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(*arguments, text=text, folder=made)
    if text is not None:
        Path(folder, "input").write_text(text, encoding="utf-8")
        arguments = ("input", *arguments)
    ran = subprocess.run(
        [sys.executable, COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=30
    )
    return ran.returncode, ran.stdout.rstrip("\\n")


class {title}Test(unittest.TestCase):
{tests}

if __name__ == "__main__":
    unittest.main()
'''
_DONE = (
    "`python3 {name}.py {use}` {title}. What it cannot use is answered with its usage and exit code 2."
    " `make test` runs it on {count} examples and needs nothing but Python."
)


def rows(tools: Mapping[str, Any]) -> Iterator[Row]:
    """Return a row for each tool, as `coding.yaml` has them."""
    return (_row(tool, tools["words"]) for tool in tools["tools"])


def _row(tool: Row, words: str) -> Row:
    name, title = tool["name"], f"Write a command that {tool['title']}, with tests"
    files = {f"{name}.py": _program(tool), f"test_{name}.py": _tests(tool), "Makefile": _MAKEFILE}
    about = f"`python3 {name}.py {tool['use']}` {tool['title']}."
    count = len(tool.get("prints", ())) + len(tool["refuses"]) + tool.get("checks", "").count("def test_")
    return {
        "match": tool["match"],
        "words": f"{words} {tool['words']} {title}",
        "label": tool["label"],
        "title": f"A command that {tool['title']}",
        "goal": f"A command {tool['title']}.",
        "tasks": [{"title": title, "description": about, "files": [*files, "README.md"]}],
        "use": f"python3 {name}.py {_quoted(tool['example'])}",
        "shows": "The answer, or one line about what it cannot use.",
        "files": files,
        "run": "make test",
        "done": _DONE.format(name=name, use=tool["use"], title=tool["title"], count=count),
    }


def _program(tool: Row) -> str:
    """The text of the program."""
    used = {"sys", *tool.get("imports", ())}
    imported = [f"import {one}" for one in sorted(used)]
    reads = tool.get("reads") == "file"
    needs_path = reads or "Path(" in tool["code"]
    named = sorted([*tool.get("from", ()), *(["pathlib import Path"] if needs_path else [])])
    imported += [f"from {one}" for one in named]
    head = f'"""{tool["title"][:1].upper()}{tool["title"][1:]}: python3 {tool["name"]}.py {tool["use"]}"""'
    main = _MAIN.format(call=_CALL_WITH_FILE if reads else _CALL, name=tool["name"], use=tool["use"])
    gap = "\n\n" if not tool["code"].startswith(("def", "class")) else "\n\n\n"
    imports, code = "\n".join(imported), tool["code"].rstrip()
    return f"{head}\n\n{imports}{gap}{code}\n{main}"


def _tests(tool: Row) -> str:
    """The text of its tests: one for each example, one for all that is refused, and those for what chance decides."""
    tests = [_example(name, *case) for name, case in tool.get("prints", {}).items()]
    text = ', text=""' if tool.get("reads") == "file" else ""
    refused = "".join(f"        self.assertEqual(run(*{one!r}{text})[0], 2)\n" for one in tool["refuses"])
    tests.append(f"    def test_refuses_what_it_cannot_use(self):\n{refused}")
    if "checks" in tool:
        tests.append("".join(f"    {line}\n" if line else "\n" for line in tool["checks"].splitlines()))
    return _TESTS.format(name=tool["name"], title=tool["name"].capitalize(), tests="\n".join(tests))


def _example(name: str, arguments: list[str], printed: str, text: str | None = None) -> str:
    given = "" if text is None else f", text={text!r}"
    return f"    def test_{name}(self):\n        self.assertEqual(run(*{arguments!r}{given}), (0, {printed!r}))\n"


def _quoted(example: str) -> str:
    """The example as it is typed: in quotation marks where it holds signs that a shell reads."""
    return f"'{example}'" if re.search(r"[^\w\s./-]", example) else example
