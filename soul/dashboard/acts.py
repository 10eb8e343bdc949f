"""Does what the owner decides on the page, the way the commands do it, whether the SOUL is awake or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from starlette.concurrency import run_in_threadpool

from common.clock import Clock, iso
from common.env_keys import KNOWN
from common.errors import SoulError, UsageError
from common.redact import Redactor
from common.settings import Settings
from common.wording import deed
from modules.runtime.database.database import Database
from modules.runtime.home import Home, lock_holder
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from modules.services.sessions import owner_inbox
from soul.command_table import rows_at
from soul.commands.config import change_setting, is_number_or_choice
from soul.commands.drafts import decide, edit, leaving_of
from soul.commands.memory import ask_memories
from soul.commands.mute import mute_account
from soul.commands.options import DraftAction
from soul.commands.pause import pause, resume
from soul.commands.self_ import decide_held

_AT_THE_MACHINE = {"SOUL_UNSAFE_EXEC", "SOUL_ALLOW_PRIVATE_NET"}


@dataclass(frozen=True, slots=True)
class PageActs:
    """The owner's hand on one home: a method `run_NAME` for each act. It returns a line, and raises `SoulError`."""

    home: Home
    settings: Settings
    clock: Clock

    async def act(self, name: str, given: Mapping[str, str]) -> str:
        """Do the act `name`. Raises `UsageError` where there is none of that name."""
        if name not in rows_at("page"):
            raise UsageError(f"There is no act {name}")
        act: Callable[[Mapping[str, str]], Awaitable[str]] = getattr(self, f"run_{name}")
        return await act(given)

    async def run_pause(self, given: Mapping[str, str]) -> str:
        pause(self.home, given.get("reason", ""))
        return "Paused: nothing is published"

    async def run_resume(self, _: Mapping[str, str]) -> str:
        standing = resume(self.home)
        return "Resumed" if standing.may_act else f"Still {standing}"

    async def run_approve(self, given: Mapping[str, str]) -> str:
        (one,) = await decide(self.settings, self.home, DraftAction.APPROVE, [_needed(given, "id")], "")
        return f"Approved: {one.body.deed or deed(one.kind)}. {leaving_of(self.settings, self.home, [one])}"

    async def run_edit(self, given: Mapping[str, str]) -> str:
        one = await edit(self.settings, self.home, _needed(given, "id"), _needed(given, "text"))
        return f"Edited and approved: {deed(one.kind)}. {leaving_of(self.settings, self.home, [one])}"

    async def run_reject(self, given: Mapping[str, str]) -> str:
        reason = given.get("reason", "")
        (one,) = await decide(self.settings, self.home, DraftAction.REJECT, [_needed(given, "id")], reason)
        return f"Rejected: {one.body.deed or deed(one.kind)}"

    async def run_self_approve(self, _: Mapping[str, str]) -> str:
        return await decide_held(self.settings, self.home, approve=True)

    async def run_self_reject(self, _: Mapping[str, str]) -> str:
        return await decide_held(self.settings, self.home, approve=False)

    async def run_memory_retire(self, given: Mapping[str, str]) -> str:
        number, now = _needed(given, "id"), self.clock.now()
        if not (number.isascii() and number.isdecimal()):
            raise UsageError(f"{number} is not the number of a memory")
        gone = await ask_memories(self.home, lambda store: store.retire(int(number), now))
        return f"Deleted memory {number}" if gone else f"There is no memory {number}"

    async def run_mute(self, given: Mapping[str, str]) -> str:
        return await mute_account(self.settings, self.home, _did(given), off=False)

    async def run_unmute(self, given: Mapping[str, str]) -> str:
        return await mute_account(self.settings, self.home, _did(given), off=True)

    async def run_say(self, given: Mapping[str, str]) -> str:
        text = Redactor(self.settings.secrets).text(_needed(given, "text").replace("\r\n", "\n"))
        if text.startswith("/"):
            raise UsageError("Commands with a slash work in the terminal", remedy="This page has buttons for most.")
        async with await Database.beside(self.home.database) as database:
            await database.run(partial(owner_inbox.insert, text=text, received_at=iso(self.clock.now())))
        is_awake = lock_holder(self.home) is not None
        return "" if is_awake else f"Kept: {self.settings.agent_name} answers after its next start"

    async def run_config_set(self, given: Mapping[str, str]) -> str:
        name = _needed(given, "name")
        if not may_be_set(name):
            raise UsageError(f"{name} cannot be set on this page", remedy=f"Use `soul config set {name}`.")
        await run_in_threadpool(change_setting, self.home.root, name, given.get("value", "").strip())
        return f"{name} is set; it takes effect at the next start."

    async def run_forget(self, given: Mapping[str, str]) -> str:
        did = _did(given)
        if given.get("sure") != "yes":
            raise UsageError("Nothing was deleted: tick the box beside the button")
        if did == self.settings.owner_bluesky_social_handle_did:
            raise UsageError("That is the owner", remedy="`soul run --flush-all` forgets all.")
        ForgetRequests(self.home.memory).give(ForgetRequest(did, self.clock.now()))
        return "Deleted at the next start; a running SOUL restarts within two minutes"


def may_be_set(name: str) -> bool:
    """Return whether the page can change a setting: a number, a switch or a choice that opens no way out."""
    return name in KNOWN and name not in _AT_THE_MACHINE and is_number_or_choice(name)


def _needed(given: Mapping[str, str], name: str) -> str:
    if not (value := given.get(name, "").strip()):
        raise UsageError(f"Which one? `{name}` is missing")
    return value


def _did(given: Mapping[str, str]) -> str:
    did = _needed(given, "did")
    if not did.startswith("did:"):
        raise SoulError(f"{did} is no DID")
    return did
