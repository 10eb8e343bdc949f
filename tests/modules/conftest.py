"""A scripted model service on loopback, one for the whole run; its script is fresh for each test."""

from collections.abc import Iterator

import pytest

from tests.modules.runtime.llm.scripted_model import ScriptedModel, serving


@pytest.fixture(scope="session")
def served_model() -> Iterator[ScriptedModel]:
    with serving() as running:
        yield running


@pytest.fixture
def model(served_model: ScriptedModel) -> ScriptedModel:
    served_model.script.clear()
    served_model.requests.clear()
    return served_model
