"""An outbox of an old account, limited only by the etiquette rules."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.services.outbox.rules.etiquette_outbox import EtiquetteOutbox, open_etiquette_outbox


@pytest.fixture
async def etiquette_outbox(tmp_path: Path) -> AsyncIterator[EtiquetteOutbox]:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        yield etiquette_outbox
