"""What `soul doctor` says of the places far away where a SOUL may keep what it knows: an object store, a server."""

from __future__ import annotations

from adapters.storage.keys import SKILLS
from adapters.storage.store import Credentials, open_storage
from common.errors import SoulError
from common.result import Err
from common.settings import Settings
from modules.runtime.home import Home
from soul.commands.findings import Finding

_DEADLINE_S = 20.0
_STORE_REMEDY = "Check STORAGE_URL, STORAGE_ACCESS_KEY_ID and STORAGE_SECRET_ACCESS_KEY in .env."


async def examine_keeping(settings: Settings, home: Home) -> list[Finding]:
    """A finding for each such place that is set; none where all lies in the home."""
    findings = [await _store(settings, home)] if settings.storage_url else []
    return [*findings, await _server(settings)] if settings.database_url.get_secret_value() else findings


async def _store(settings: Settings, home: Home) -> Finding:
    who = Credentials(settings.storage_access_key_id, settings.storage_secret_access_key.get_secret_value())
    try:
        storage = open_storage(settings.storage_url, root=home.store, credentials=who, deadline_s=_DEADLINE_S)
    except SoulError as error:
        return Finding("store", "fail", str(error), error.remedy)
    try:
        listed = await storage.list(SKILLS)
    finally:
        await storage.aclose()
    if isinstance(listed, Err):
        return Finding("store", "fail", listed.error, _STORE_REMEDY)
    return Finding("store", "ok", "it can be read")


async def _server(settings: Settings) -> Finding:
    from modules.services.agent.memory.postgres_store import PostgresMemories  # noqa: PLC0415 - an optional library

    try:
        store = PostgresMemories(settings.database_url.get_secret_value(), settings.agent_name, deadline_s=_DEADLINE_S)
    except SoulError as error:
        return Finding("memory server", "fail", str(error), error.remedy)
    try:
        return Finding("memory server", "ok", f"{await store.count()} memories of {settings.agent_name}")
    except SoulError as error:
        return Finding("memory server", "fail", str(error), error.remedy)
    finally:
        await store.aclose()
