"""An account in the town, and the services that disclose what it is."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from common.redact import Redactor
from common.result import Ok
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.presence.disclosure import Disclosure
from modules.services.presence.policy import AUTONOMY, MESSAGES, Level, MessagePolicy, Operator
from tests.fresh_database import open_database
from tests.loopback import to_loopback
from tests.patience import HANG_S
from tests.shipped_skills import CONTACT_LINE
from town.atproto.index import PROFILE, Json
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, atproto_app
from town.serving import serve

OWNER = "did:plc:ownerownerownerownerowne"


@dataclass
class Account:
    """An account in the town, with what it takes to disclose what it is."""

    network: Network
    faults: AtprotoFaults
    clock: FakeClock
    console: SilentConsole
    database: Database
    journal: Journal
    atproto: Atproto

    def disclosure(
        self,
        *,
        label: bool = True,
        contact: str = "",
        level: Level = "automated",
        message_policy: MessagePolicy | None = None,
    ) -> Disclosure:
        return Disclosure(
            atproto=self.atproto,
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            label=label,
            operator=Operator("owner.test", OWNER, contact, level),
            contact_line=CONTACT_LINE,
            message_policy=message_policy,
        )

    def profile(self) -> Json:
        record = self.network.profile(self.atproto.did)
        assert record
        return record.value

    def autonomy(self) -> Json | None:
        record = self.network.record(self.atproto.did, AUTONOMY, "self")
        return record.value if record else None

    def declaration(self) -> Json | None:
        record = self.network.record(self.atproto.did, MESSAGES, "self")
        return record.value if record else None

    def put(self, **profile: Any) -> None:
        self.network.put(self.atproto.did, PROFILE, "self", profile)

    def warnings(self) -> list[str]:
        return [message for kind, message, _ in self.console.lines if kind == "warn"]

    async def points(self) -> list[int]:
        return await self.database.run(
            lambda connection: [row[0] for row in connection.execute("SELECT points FROM other_writes")]
        )


@pytest.fixture
async def account(tmp_path: Path) -> AsyncIterator[Account]:
    clock, faults, console = FakeClock(), AtprotoFaults(), SilentConsole()
    network = Network(clock=clock)
    network.create_account("rowan.test", "rowan-pass")
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serve(atproto_app(network, faults=faults)))
        database = await open_database(tmp_path / "soul.db")
        stack.push_async_callback(database.close)
        atproto = Atproto(
            transport=to_loopback,
            service_url=url,
            identifier="rowan.test",
            password="rowan-pass",
            session_path=tmp_path / "session.json",
            clock=clock,
            min_spacing_s=0,
            read_timeout_s=HANG_S,
        )
        stack.push_async_callback(atproto.aclose)
        assert isinstance(await atproto.authenticate(), Ok)
        journal = Journal(database, console, clock, Redactor())
        yield Account(network, faults, clock, console, database, journal, atproto)
