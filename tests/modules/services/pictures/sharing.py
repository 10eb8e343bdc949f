"""An outbox that sends pictures to the town's Bluesky."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.arena import Arena
from adapters.web.client import WebClient, WebTransport
from common.clock import Clock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.outbox.bodies import AttachedPicture, IntentKind, PictureSource
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import BlueskySender
from modules.services.outbox.types import Intent, Pacing
from modules.services.pictures.pictures import Pictures
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.results import ok
from tests.adapters.shared_server import SharedServer
from tests.fresh_database import open_database
from town.gallery.library import picture
from town.serving import serve

KINDS: tuple[IntentKind, ...] = ("post", "reply")
SOURCE = PictureSource(
    type="arena",
    image_url="https://images.example/1",
    original_url="https://harbour.example/lights/old",
    block_id=5005,
    block_url="https://www.are.na/block/5005",
    block_title="The old light",
)


def pictures_in(
    memory: Path,
    clock: Clock,
    database: Database,
    journal: Journal,
    url: str = "http://127.0.0.1:9",
    *,
    private_ok: bool = False,
) -> Pictures:
    """Return the pictures in the folder `memory`; `url` is a gallery."""
    web = WebClient(WebTransport(allow=[url], private_ok=private_ok))
    arena = Arena(web, f"{url}/v2")
    return Pictures(memory, clock=clock, database=database, journal=journal, web=web, arena=arena)


@dataclass
class Sharing:
    """The town, the outbox, and the pictures of the account `alice`."""

    town: AtprotoTown
    database: Database
    console: SilentConsole
    outbox: Outbox
    pictures: Pictures
    memory: Path

    async def attached(self, name: str = "lighthouse.jpg", source: PictureSource = SOURCE) -> AttachedPicture:
        """Return a picture of the gallery that is ready to be posted."""
        return ok(await self.pictures.attach(picture(name), alt="A lighthouse, painted", why="stripes", source=source))

    async def now(self, intent: Intent) -> Intent:
        """Return the intent as it is now."""
        found = await self.outbox.get(intent.id)
        assert found is not None
        return found

    def reopened(self) -> Pictures:
        """Return the pictures as another process would find them."""
        journal = Journal(self.database, self.console, self.town.clock, Redactor())
        return pictures_in(self.memory, self.town.clock, self.database, journal)


@asynccontextmanager
async def open_sharing(folder: Path, kinds: Sequence[IntentKind] = KINDS) -> AsyncIterator[Sharing]:
    """Open a fresh town with the account `alice` logged in, and an outbox that sends intents of these kinds."""
    server, console = SharedServer(), SilentConsole()
    async with serve(server) as url:
        server.url = url
        async with open_atproto_town(server, folder) as town:
            atproto = await town.logged_in("alice")
            database = await open_database(folder / "soul.db")
            journal = Journal(database, console, town.clock, Redactor())
            pictures = pictures_in(folder / "memory", town.clock, database, journal)
            outbox = Outbox(
                database=database,
                journal=journal,
                clock=town.clock,
                senders=dict.fromkeys(kinds, BlueskySender(atproto, pictures)),
                pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
                own_did=lambda: atproto.did,
            )
            yield Sharing(town, database, console, outbox, pictures, folder / "memory")
            await database.close()
