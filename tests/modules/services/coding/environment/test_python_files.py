"""The packages that the files of a Python repository ask for."""

import json
from pathlib import Path

import pytest

from modules.services.coding.environment.python import project_of
from modules.services.coding.environment.python_files import poetry_specifier, python_needs

HASH = "0" * 64
ELSEWHERE = "http://192.0.2.1"
UV_LOCK = f"""
[[package]]
name = "beds"
version = "1.0"
source = {{registry = "{ELSEWHERE}"}}
wheels = [{{url = "{ELSEWHERE}/b", hash = "sha256:{HASH}"}}]
"""


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("pyproject.toml", '[project]\nname="a"\ndependencies=["beds>=1", "b;python_version<\'3\'"]', {"beds>=1"}),
        (
            "pyproject.toml",
            '[project]\nname="a"\n[project.optional-dependencies]\nDev=["a[x]", "lint"]\nx=["beds"]\ndocs=["paper"]',
            {"beds", "lint"},
        ),
        (
            "pyproject.toml",
            '[dependency-groups]\ntest=[{include-group="x"}]\nx=["beds", {include-group="test"}]',
            {"beds"},
        ),
        ("pyproject.toml", '[tool.poetry.group.dev.dependencies]\npython="^3.9"\nbeds="^1.2"', {"beds<2,>=1.2"}),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    beds>=1\n[options.extras_require]\ntests = lint\n",
            {"beds>=1", "lint"},
        ),
        (
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['beds'], extras_require={'dev': ['lint']})",
            {"beds", "lint"},
        ),
        ("setup.py", "setup(install_requires='beds', extras_require={'dev': 'lint', 'test': 3})", {"beds", "lint"}),
        (
            "pyproject.toml",
            '[project]\nname="a"\ndependencies="beds"\noptional-dependencies={dev="lint"}',
            {"beds", "lint"},
        ),
        ("pyproject.toml", '[dependency-groups]\ndev="beds"\n[tool.uv]\ndev-dependencies="lint"', {"beds", "lint"}),
        ("requirements.txt", "beds == 1.0  # three\nlint[x] \\\n  >= 2\n", {"beds==1.0", "lint[x]>=2"}),
        ("requirements/tests.txt", "beds\n", {"beds"}),
        ("requirements-docs.txt", "paper\n", set()),
        ("uv.lock", '[[package]]\nname="beds"\nversion="1.0"\nsource={registry="https://x"}\n', {"beds==1.0"}),
        ("Pipfile.lock", json.dumps({"default": {"beds": {"version": "==1.0"}}}), {"beds==1.0"}),
    ],
)
def test_requirements_are_found_where_python_tools_write_them(name: str, text: str, wanted: set[str]) -> None:
    found = set(python_needs({name: text}, has_tests=False).requirements)
    assert found - {'b; python_version < "3"'} == wanted


@pytest.mark.parametrize(
    "line",
    [
        f"beds @ {ELSEWHERE}/beds.whl",
        f"{ELSEWHERE}/beds.whl",
        f"git+{ELSEWHERE}/beds#egg=beds",
        f"--index-url {ELSEWHERE}",
        f"-i {ELSEWHERE}",
        f"--find-links={ELSEWHERE}",
        "-e ../beds",
        "./beds.whl",
        f"beds; x == 1 --index-url {ELSEWHERE}",
    ],
)
def test_no_address_or_option_is_taken_and_what_is_left_out_is_told(line: str) -> None:
    needs = python_needs({"requirements.txt": f"{line}\nlint\n"}, has_tests=False)
    assert needs.requirements == ("lint",)
    assert needs.lacks


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", UV_LOCK),
        ("poetry.lock", f'[[package]]\nname="beds"\nversion="1.0"\nfiles=[{{file="b", hash="sha256:{HASH}"}}]'),
        (
            "pylock.toml",
            f'[[packages]]\nname="beds"\nversion="1.0"\nwheels=[{{url="{ELSEWHERE}/b", hashes={{sha256="{HASH}"}}}}]',
        ),
        ("Pipfile.lock", json.dumps({"develop": {"beds": {"version": "==1.0", "hashes": [f"sha256:{HASH}"]}}})),
        ("requirements.txt", f"beds==1.0 --hash=sha256:{HASH}"),
    ],
)
def test_a_lock_gives_versions_and_hashes_and_no_address(name: str, text: str) -> None:
    needs = python_needs({name: text, "pyproject.toml": '[project]\nname="a"\ndependencies=["beds"]'}, has_tests=False)
    assert needs.hashes == {("beds", "1.0"): (f"sha256:{HASH}",)}
    assert "beds==1.0" in (*needs.constraints, *needs.requirements)
    assert ELSEWHERE not in str(needs)


def test_what_a_lock_takes_from_elsewhere_is_not_asked_of_the_index() -> None:
    lock = f'[[package]]\nname="beds"\nversion="1.0"\nsource={{git="{ELSEWHERE}"}}'
    needs = python_needs(
        {"uv.lock": lock, "pyproject.toml": '[project]\nname="a"\ndependencies=["beds"]'}, has_tests=False
    )
    assert not needs.requirements
    assert "beds" in needs.lacks[0]


@pytest.mark.parametrize("text", ["[", "project = 3", "[project]\ndependencies = 3\n", "a = " + "[" * 3_000])
def test_a_file_that_cannot_be_read_is_told_and_the_others_count(text: str) -> None:
    needs = python_needs({"pyproject.toml": text, "uv.lock": text, "requirements.txt": "beds"}, has_tests=True)
    assert needs.requirements == ("beds", "pytest")


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("^1.2.3", "<2,>=1.2.3"),
        ("^0.2", "<0.3,>=0.2"),
        ("~1.2", "<1.3,>=1.2"),
        ("1.5", "==1.5"),
        ("*", ""),
        (">=1,<3", "<3,>=1"),
    ],
)
def test_a_version_of_poetry_is_read(told: str, meant: str) -> None:
    assert poetry_specifier(told) == meant


def test_a_folder_of_a_stale_lock_that_is_gone_is_no_part_of_the_project(tmp_path: Path) -> None:
    project = project_of(tmp_path, {"setup.py": ""}, ("gone",))
    assert project is not None
    assert (project.roots, project.version) == ((".",), "0.0.0")


def test_no_link_of_a_repository_leads_the_search_for_its_modules_and_version_out_of_it(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (outside / "beds").mkdir(parents=True)
    (outside / "beds" / "__init__.py").write_text('__version__ = "6.6"\n')
    (tree / "beds").mkdir(parents=True)
    (tree / "beds" / "__init__.py").touch()
    (tree / "lib").symlink_to(outside)
    (tree / "other").symlink_to(outside / "beds")
    page = '[project]\nname = "beds"\ndynamic = ["version"]\n[tool.setuptools.package-dir]\n"" = "lib"\n'
    (tree / "pyproject.toml").write_text(page)
    project = project_of(tree, {"pyproject.toml": page}, (".",))
    assert project is not None
    assert (project.roots, project.version) == ((".",), "0.0.0")
