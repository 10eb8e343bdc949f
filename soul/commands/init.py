"""`soul init`: asks what cannot be guessed, writes the files of a new home, never overwrites one."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import get_args
from urllib.parse import urlencode

import typer

from adapters.web.types import Fetched
from common.clock import SystemClock
from common.env_file import with_values
from common.errors import ConfigError
from common.files import storage_error, write_atomic
from common.result import ApiResult, Err
from common.settings import Approval, Settings, load_name, load_settings
from common.text.strings import ensure_https
from common.wording import number
from modules.runtime.budget.types import MICRO
from modules.runtime.home import Home, ensure_self
from modules.services.agent.onboarding import BOOTSTRAP_DONE, BOOTSTRAP_FILE
from soul.commands.findings import report
from soul.resources import template
from soul.terminal.output import write_lines

_TIMEOUT_S = 10.0
_MAX_BYTES = 64 * 1024
_SECRET_MODE = 0o600
_READ_PER_WRITTEN = 20
"""Of so many tokens about one is written by the model, and the others are read."""


def run_init(root: Path) -> None:
    """Make the home.

    Raises:
        StorageError: it cannot be written.
        ConfigError: the `.env` that is there cannot be read, or nobody answers the questions.

    """
    home = Home.at(root)
    if _lacks_settings(home):
        answers = _answers()
        name = answers["AGENT_NAME"]
        write_atomic(home.env, fill_env(template(".env.example"), answers), mode=_SECRET_MODE)
        write_lines(f"Wrote {home.env} (readable only by you).")
        _check(home)
    else:
        name = load_name(home.root)
        write_lines(f"Kept {home.env} as it is.")
    new = not home.self_md.exists()
    if home.soul.exists():
        write_lines(f"Kept {home.soul} as it is.")
    else:
        write_atomic(home.soul, template("SOUL.md"), mode=0o644)
        write_lines(f"Wrote {home.soul}: read it, and make it yours. The SOUL can never change it.")
    if name and ensure_self(
        home, template=template("SELF.md"), agent_name=name, today=f"{SystemClock().now():%Y-%m-%d}"
    ):
        write_lines(f"Wrote {home.self_md}: the SOUL will rewrite it as it grows.")
    elif not name:
        write_lines("Its name is still to come: set AGENT_NAME in .env. SELF.md is written at the first start.")
    bootstrap, done = home.workspace / BOOTSTRAP_FILE, home.workspace / BOOTSTRAP_DONE
    if new and not bootstrap.exists() and not done.exists():
        write_atomic(bootstrap, template(BOOTSTRAP_FILE), mode=0o644)
        write_lines(f"Wrote {bootstrap}: what your first talk with the SOUL is about.")
    where = "" if home.root == Path.cwd() else f" --home {home.root}"
    write_lines(f"Next: `soul doctor{where}`, then `soul run{where}`.")


def fill_env(example: str, answers: dict[str, str]) -> str:
    """`.env.example` with the answers filled in, each quoted; defaults that were not answered stay commented."""
    return with_values(example, {key: value for key, value in answers.items() if value})


def _lacks_settings(home: Home) -> bool:
    """Whether there is no `.env` yet. Raises `StorageError` where none can be written: nobody is asked in vain."""
    try:
        if home.env.exists():
            return False
        folder = next(folder for folder in (home.root, *home.root.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        raise storage_error(home.env, error) from error


def _answers() -> dict[str, str]:
    try:
        return _ask()
    except typer.Abort as refusal:
        if not isinstance(refusal.__context__, EOFError):
            raise
        write_lines("")
        raise ConfigError(
            "`soul init` asks questions, and its input ended before they were answered: nothing was written",
            remedy="Run it in a terminal; or copy .env.example to .env in that folder, fill it in, and run it again.",
        ) from None


def _ask() -> dict[str, str]:
    service = ensure_https(typer.prompt("Bluesky service", default="https://bsky.social").strip())
    answers = {
        "ATPROTO_SERVICE_URL": service,
        "AGENT_NAME": typer.prompt("Name of the SOUL"),
        "AGENT_BLUESKY_USERNAME": typer.prompt("Its Bluesky handle").strip().removeprefix("@"),
        "AGENT_BLUESKY_PASSWORD": typer.prompt("Its app password", hide_input=True),
    }
    handle = typer.prompt("Your own Bluesky handle").strip().removeprefix("@")
    answers["OWNER_BLUESKY_SOCIAL_HANDLE"] = handle
    found = resolve(service, handle)
    if found:
        write_lines(f"Found your DID: {found}")
    else:
        write_lines(f"Could not look up the DID of {handle} at {service}.")
    answers["OWNER_BLUESKY_SOCIAL_HANDLE_DID"] = found or typer.prompt("Your DID (did:plc:…)")
    base_url = typer.prompt("Model service (OpenAI-compatible)", default="https://ai-gateway.vercel.sh/v1")
    answers["AI_GATEWAY_BASE_URL"] = ensure_https(base_url.strip())
    answers["AI_GATEWAY_MODEL"] = typer.prompt("Model", default="openai/gpt-5.2")
    answers["AI_GATEWAY_API_KEY"] = typer.prompt("Its key", hide_input=True)
    asked = "US dollars that a day may cost at most (-: its limit of tokens is enough)"
    answers["BUDGET_USD_PER_DAY"] = typer.prompt(asked, default="-", value_proc=_dollars)
    asked = "What waits for your yes: drafts (all, best for the first week), strangers, or off"
    answers["SOUL_APPROVAL"] = typer.prompt(asked, default="drafts", value_proc=_approval)
    return answers


def _dollars(given: str) -> str:
    said = given.strip().removeprefix("$")
    if said in {"", "-"}:
        return ""
    try:
        if float(said) >= 0:
            return said
    except ValueError as error:
        raise typer.BadParameter(f"{given} is no amount such as 2.50") from error
    raise typer.BadParameter("It cannot be less than 0")


def _approval(given: str) -> str:
    if (said := given.strip().lower()) in get_args(Approval):
        return said
    raise typer.BadParameter(f"One of {', '.join(get_args(Approval))}")


def _check(home: Home) -> None:
    """Say whether the answers let it log in and think, and what a day may cost; they stand in `.env` either way."""
    from soul.commands.doctor import examine_accounts  # noqa: PLC0415 - other commands need not wait for it

    try:
        settings = load_settings(home.root)
        if not report(asyncio.run(examine_accounts(settings, home)), as_json=False):
            write_lines(f"  → Correct it in {home.env}, then `soul doctor` looks again.")
        write_lines(_cost(settings))
    except ConfigError as error:
        write_lines(f"✗ {error}", f"  → {error.remedy}")


def _cost(settings: Settings) -> str:
    """What a day costs where all of its tokens are used, most of them read."""
    from modules.runtime.budget.prices import PriceList  # noqa: PLC0415 - the same

    model, tokens = settings.ai_gateway_model, settings.budget_tokens_per_day
    now = SystemClock().now()
    price = PriceList([model], settings.model_prices, base_url=settings.ai_gateway_base_url, now=now).get(model)
    used = f"A day may take {number(tokens)} tokens of {model} (BUDGET_TOKENS_PER_DAY)"
    if price is None:
        return f"{used}; what they cost is not known here: set MODEL_PRICES"
    written = tokens // _READ_PER_WRITTEN
    dollars = price.cost(tokens - written, written) / MICRO
    cap = settings.budget_usd_per_day
    at_most = "" if cap is None else f", and never more than {cap:.2f} (BUDGET_USD_PER_DAY)"
    return f"{used}: expect up to {dollars:.2f} US dollars{at_most}"


def resolve(service: str, handle: str) -> str | None:
    """The DID of `handle`, or None when the service does not say."""
    query = urlencode({"handle": handle})
    answer = asyncio.run(_fetch(service, f"{service.rstrip('/')}/xrpc/com.atproto.identity.resolveHandle?{query}"))
    if isinstance(answer, Err):
        return None
    try:
        return str(json.loads(answer.data.text)["did"])
    except (ValueError, LookupError, TypeError):
        return None


async def _fetch(service: str, url: str) -> ApiResult[Fetched]:
    """Ask the service that the owner has just named."""
    from adapters.web.client import WebClient  # noqa: PLC0415 - other commands need not wait for it
    from adapters.web.transport import WebTransport  # noqa: PLC0415 - the same

    try:
        web = WebClient(WebTransport(allow=[service]))
    except ValueError as error:
        return Err(str(error), kind="invalid")
    try:
        kinds = ["application/json"]
        return await web.fetch(url, kinds=kinds, max_bytes=_MAX_BYTES, deadline_s=_TIMEOUT_S, named=True)
    finally:
        await web.aclose()
