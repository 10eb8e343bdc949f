"""Finds in the files of a repository the commands that test it and the tests that it declares. Pure."""

import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

PACKAGES = ".soul-packages"
CARGO, GO = f"{PACKAGES}/cargo", f"{PACKAGES}/go"
"""The folders in a tree for the packages of Cargo and Go."""
NOT_SOURCE = frozenset({".git", "node_modules", ".venv", "target", PACKAGES})
"""Folders without files of the repository itself."""
_NO_TESTS = "no test specified"
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_RULE = re.compile(r"^([\w./-]+)[ \t]*:(?!=)(.*)(?:\n(?:[ \t].*)?$)*", re.MULTILINE)
_SETTING = re.compile(r"^(?:(?:export|override)[ \t]+)?[\w.-]+[ \t]*[:?+!]{0,3}=.*$|^-?include[ \t].*$", re.MULTILINE)
_NPM_CALL = re.compile(r"\b(?:npm|pnpm|yarn)\s+(?:run\s+)?([\w:.-]+)")
_NPM_SETTINGS = ("jest", "mocha", "ava", "c8", "tap")
PYTEST_FILE = re.compile(r"test_\w+\.py|\w+_test\.py")
_PYTEST_SECTIONS = (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest"))

_SCRIPT = re.compile(r".+\.[cm]?[jt]sx?")
_SCRIPT_TESTS = re.compile(r"(.*[._-])?(test|tests|spec)\.[cm]?[jt]sx?|test-.*\.[cm]?[jt]s")
_SCRIPT_FOLDERS = frozenset({"test", "__tests__"})
TEST_FOLDERS = _SCRIPT_FOLDERS | {"tests", "spec"}
_SCRIPT_TEST = re.compile(r"(?:^|[^\w.])(?:test|it)\s*\(\s*(['\"`])(.{1,200}?)\1")
_PYTHON_TEST = re.compile(r"^\s*(?:async\s+)?def\s+(test\w*)\s*\(")
_PYTHON_CLASS = re.compile(r"class\s+(\w+)")
_GO_TEST = re.compile(r"^func\s+(Test\w+)\s*\(")
_RUST_FUNCTION = re.compile(r"^\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
_RUST_TEST = re.compile(r"\btest\b")
_NOT_RUN = re.compile(r"\.(?:skip|xfail)|\bignore\b")
_ATTRIBUTE = ("@", "#[")
_COMMENT = ("//", "# ")
_CHECK = re.compile(r"\bassert\w*\b|\bexpect\(|#\[cfg\(test\)\]")
_SKIP = re.compile(
    r"\.(?:skip|todo|Skip|only)\w*(?:\.each)?\s*[(`]|\bmark\.(?:skip|xfail)|#\[ignore"
    r"|(?<![\w.])(?:x(?:describe|context|it|test)|f(?:describe|context|it))(?:\.each)?\s*[(`]"
    r"|\b(?:skip|todo|only)['\"]?\s*:\s*(?:true\b|['\"`])"
)
SET_UP = re.compile(r"conftest\.py|(?:jest|vitest|ava)\.config\.\w+|\.mocharc\.\w+")
_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")


def suite_definitions(names: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the commands that test a repository, each with its definition in the files.

    Args:
        names: the names of all files.
        texts: the contents of the small files in the root and of the files that set up tests.

    """
    definitions = {
        "npm test --silent": _npm_definition(texts),
        "make test": next((found for name in _MAKEFILES if (found := _make_definition(texts.get(name, "")))), None),
        "pytest": _pytest_definition(texts) if any(PYTEST_FILE.fullmatch(name) for name in names) else None,
        "cargo test": "" if "Cargo.toml" in texts else None,
        "go test ./...": "" if "go.mod" in texts else None,
    }
    return {command: definition for command, definition in definitions.items() if definition is not None}


def declared_tests(path: str, text: str) -> Iterator[str]:
    """Yield the names of the tests that a file declares and does not skip; none if it is not a test file."""
    pattern, attributes, owner = test_pattern(path), "", ""
    for line in text.split("\n") if pattern else ():
        if line.lstrip().startswith(_COMMENT):
            continue
        if line.lstrip().startswith(_ATTRIBUTE):
            attributes += line
            if not (pattern is _RUST_FUNCTION and pattern.search(line)):
                continue
        if pattern is _PYTHON_TEST and line[:1].strip():
            named = _PYTHON_CLASS.match(line)
            owner = f"{named[1]}." if named else ""
        found = pattern.search(line) if pattern else None
        is_test = pattern is not _RUST_FUNCTION or _RUST_TEST.search(attributes)
        if found and is_test and not _NOT_RUN.search(attributes):
            yield owner + found[found.lastindex or 0]
        attributes = attributes if not line.strip() else ""


def checks_of(text: str) -> tuple[int, int]:
    """Return how many lines contain a check, and how many skip tests or run no others."""
    lines = text.split("\n")
    return sum(bool(_CHECK.search(line)) for line in lines), sum(bool(_SKIP.search(line)) for line in lines)


def test_pattern(path: str) -> re.Pattern[str] | None:
    """Return the pattern of a test declaration in a file; None if it is not a test file."""
    *folders, name = path.split("/")
    is_script = _SCRIPT_TESTS.fullmatch(name) or (_SCRIPT_FOLDERS.intersection(folders) and _SCRIPT.fullmatch(name))
    kinds = (
        (PYTEST_FILE.fullmatch(name), _PYTHON_TEST),
        (name.endswith("_test.go"), _GO_TEST),
        (name.endswith(".rs"), _RUST_FUNCTION),
        (is_script, _SCRIPT_TEST),
    )
    return next((pattern for is_of_kind, pattern in kinds if is_of_kind), None)


def _npm_definition(texts: Mapping[str, str]) -> str | None:
    try:
        page = json.loads(texts.get("package.json") or "{}")
        scripts = {name: text for name, text in (page.get("scripts") or {}).items() if isinstance(text, str)}
    except (ValueError, AttributeError, TypeError):
        return None
    script = scripts.get("test", "")
    if not script.strip() or _NO_TESTS in script:
        return None
    told, left = dict[str, str](), ["test"]
    while left:
        name = left.pop()
        run = {one: scripts[one] for one in (f"pre{name}", name, f"post{name}") if one in scripts and one not in told}
        told |= run
        left += [called for text in run.values() for called in _NPM_CALL.findall(text)]
    settings = {name: page[name] for name in _NPM_SETTINGS if name in page}
    return json.dumps([told, settings, _set_up(texts, of_python=False)], sort_keys=True)


def _make_definition(text: str) -> str:
    """Return the definition of `make test`: its rule, the rules it needs, and global settings; "" if it has no rule."""
    rules, told, left = {found[1]: found for found in _RULE.finditer(text)}, dict[str, str](), ["test"]
    while left:
        name = left.pop()
        if name in rules and name not in told:
            told[name] = rules[name][0].rstrip()
            left += rules[name][2].split()
    return "\n".join([*_SETTING.findall(text), *told.values()]) if told else ""


def _pytest_definition(texts: Mapping[str, str]) -> str:
    """Return the pytest settings in the files of the root; `pyproject.toml` in full if it cannot be parsed."""
    try:
        project = tomllib.loads(texts.get("pyproject.toml", "")).get("tool", {}).get("pytest", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        project = texts["pyproject.toml"]
    sections = [_section(texts.get(name, ""), section) for name, section in _PYTEST_SECTIONS]
    told = [[texts.get(name, "") for name in _PYTEST_FILES], project, *sections, _set_up(texts, of_python=True)]
    return json.dumps(told, sort_keys=True, default=str)


def _set_up(texts: Mapping[str, str], *, of_python: bool) -> dict[str, str]:
    """Return the files that set up tests of Python (`of_python`), or of scripts."""
    names = [path for path in texts if SET_UP.fullmatch(path.rpartition("/")[2])]
    return {path: texts[path].strip() for path in names if path.endswith(".py") is of_python}


def _section(text: str, name: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return text
    return dict(parser[name]) if parser.has_section(name) else {}
