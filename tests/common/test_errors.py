"""The tree of errors: what one `except` catches, and what the owner reads."""

from __future__ import annotations

import inspect
import re

import pytest

from common import errors

TREE = [value for _, value in inspect.getmembers(errors, inspect.isclass)]


def test_one_except_catches_everything_that_we_raise_on_purpose() -> None:
    assert all(issubclass(error, errors.SoulError) for error in TREE)


def test_the_tree_at_the_top_of_the_module_shows_every_error() -> None:
    drawn = set(re.findall(r"[A-Z][a-z]+[A-Za-z]*", str(errors.__doc__)))
    assert {error.__name__ for error in TREE} <= drawn


@pytest.mark.parametrize("error", TREE)
def test_every_error_tells_the_owner_what_and_how_to_mend_it(error: type[errors.SoulError]) -> None:
    raised = error("the disk is full", remedy="Free some space.")
    assert str(raised) == "the disk is full"
    assert raised.remedy == "Free some space."


@pytest.mark.parametrize(
    "error",
    [
        errors.ConfigError,
        errors.IdentityError,
        errors.HomeLocked,
        errors.ModelRefused,
        errors.SkillError,
        errors.StorageError,
    ],
)
def test_what_needs_the_owner_stops_the_process(error: type[errors.SoulError]) -> None:
    assert issubclass(error, errors.Fatal)


def test_a_passing_trouble_says_when_to_come_back() -> None:
    assert errors.Transient("busy", retry_after=30).retry_after == 30
    assert errors.Transient("busy").retry_after is None
    assert not issubclass(errors.Transient, errors.Fatal)
