"""`soul init`: asks for the settings, tests the answers, and writes the files of a new home; it overwrites none.

Each answer is written to `.env` as soon as it is given, so a later `soul init` goes on where an earlier one stopped.
"""

import asyncio
import shlex
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import typer
from pydantic import SecretStr

from common.clock import SystemClock
from common.env_file import given, with_values
from common.errors import ConfigError
from common.files import storage_error, write_atomic
from common.redact import Redactor
from common.settings import Settings, owner_mistake, settings_of
from common.wording import number
from modules.runtime.budget.policy import MICRO
from modules.runtime.budget.prices import Price, PriceList
from modules.runtime.home import Home, ensure_self, read_self
from modules.runtime.llm.connection import NoBudgetGuard
from modules.services.agent.onboarding import BOOTSTRAP_DONE, BOOTSTRAP_FILE
from modules.services.identity.identity import extract_display_name
from soul.commands.at_hand import settings_to_run
from soul.commands.config import confirmed, explained_settings
from soul.commands.findings import Finding, report
from soul.commands.handles import resolve
from soul.resources import template
from soul.terminal.output import write_lines

_WIDTH = 79
_READ_PER_WRITTEN = 20
"""An estimate: of this many tokens, the model writes one and reads the others."""
_NONE = "-"
_INTRODUCTION = (
    "A SOUL needs four things, and this asks for them one after the other:",
    "  1. a name, and what it may publish without your approval",
    "  2. a Bluesky account of its own, with an app password (Settings → Privacy and security → App passwords)",
    "  3. your own Bluesky handle: it obeys this account alone",
    "  4. a model service with a key, and what a day may cost",
    "GitHub and a room come last and are optional. Each answer is tried at once, and kept in",
    "{env}, which only you can read.",
    "Ctrl-C stops; the next `soul init` goes on from there.",
    "",
)


@dataclass(frozen=True, slots=True)
class SettingQuestion:
    """The question for one setting. With `default` "" an answer is needed; "-" stands for no value.

    `is_explained`: the meaning of the setting in `.env.example` is printed before the question.
    """

    name: str
    text: str
    default: str = ""
    clean: Callable[[str], str] = str.strip
    is_explained: bool = False

    @property
    def is_secret(self) -> bool:
        """Whether the answer is hidden while it is typed."""
        return Settings.model_fields[self.name.lower()].annotation is SecretStr


def _handle(text: str) -> str:
    return text.strip().removeprefix("@")


_ABOUT = (
    SettingQuestion("AGENT_NAME", "Name of the SOUL"),
    SettingQuestion("SOUL_APPROVAL", "drafts (best at first), strangers or off", "drafts", is_explained=True),
)
_SERVICE = SettingQuestion("ATPROTO_SERVICE_URL", "Bluesky service", "https://bsky.social")
_ACCOUNT = (
    _SERVICE,
    SettingQuestion("AGENT_BLUESKY_USERNAME", "Its Bluesky handle", clean=_handle),
    SettingQuestion("AGENT_BLUESKY_PASSWORD", "Its app password"),
)
_OWNER = SettingQuestion("OWNER_BLUESKY_SOCIAL_HANDLE", "Your own Bluesky handle", clean=_handle)
_OWNER_DID = SettingQuestion("OWNER_BLUESKY_SOCIAL_HANDLE_DID", "Your DID (did:plc:…)")
_MODEL = (
    SettingQuestion("AI_GATEWAY_BASE_URL", "Model service (OpenAI-compatible)", "https://ai-gateway.vercel.sh/v1"),
    SettingQuestion("AI_GATEWAY_MODEL", "Model", "openai/gpt-5.2"),
)
_DOLLARS = SettingQuestion(
    "BUDGET_USD_PER_DAY", "US dollars that a day may cost at most (-: only its limit of tokens)", _NONE
)
_PRICES = SettingQuestion(
    "MODEL_PRICES", "Its price is not known here: US dollars per million tokens in/out, such as 0.15/0.60"
)
_KEY = SettingQuestion("AI_GATEWAY_API_KEY", "Its key")
_GITHUB = (
    SettingQuestion("AGENT_GITHUB_USERNAME", "Its GitHub login"),
    SettingQuestion("AGENT_GITHUB_TOKEN", "Its token (classic: repo, notifications, read:org, user:follow)"),
    SettingQuestion("OWNER_GITHUB_USERNAME", "Your own GitHub login (-: none)", _NONE),
)
_ROOM = SettingQuestion("SPACE_URL", "Room to join, such as ws://192.0.2.2:7777 (-: one that it finds nearby)", _NONE)


def run_init(root: Path) -> bool:
    """Make the home, and return whether all tested answers are right.

    Raises:
        StorageError: the home cannot be written.
        ConfigError: existing settings are wrong, or the input ends before the questions are answered.

    """
    home = Home.at(root)
    _refuse_unwritable(home)
    is_right, values = True, given(root).values
    for problem in given(root).problems:
        raise problem
    if all(name in values for name, setting in Settings.model_fields.items() if setting.is_required()):
        settings = settings_to_run(root)
        write_lines(f"Kept {home.env} as it is.")
    else:
        is_right = _Interview(home, dict(values)).run()
        settings = settings_to_run(root)
    _write_files(home, settings.agent_name)
    where = "" if home.root == Path.cwd() else f" --home {shlex.quote(str(home.root))}"
    if is_right:
        write_lines(f"Next: `soul doctor{where}`, then `soul run{where}`.")
    else:
        write_lines(f"Not everything is right yet: correct {home.env}; `soul doctor{where}` checks again.")
    return is_right


def fill_env(example: str, answers: dict[str, str]) -> str:
    """Return `.env.example` with the answers filled in, each quoted; defaults that were not answered stay commented."""
    return with_values(example, {key: value for key, value in answers.items() if value})


def _write_files(home: Home, name: str) -> None:
    new = not home.self_md.exists()
    if home.soul.exists():
        write_lines(f"Kept {home.soul} as it is.")
    else:
        write_atomic(home.soul, template("SOUL.md"), mode=0o644)
        write_lines(f"Wrote {home.soul}: read it, and make it yours. The SOUL can never change it.")
    if ensure_self(home, template=template("SELF.md"), agent_name=name, today=f"{SystemClock().now():%Y-%m-%d}"):
        write_lines(f"Wrote {home.self_md}: the SOUL will rewrite it as it grows.")
    write_lines(
        f"Its display name is {extract_display_name(read_self(home), agent_name=name)}. To change it, edit the first"
        " heading of SELF.md. On Bluesky, people see the name in its Bluesky profile."
    )
    bootstrap, done = home.workspace / BOOTSTRAP_FILE, home.workspace / BOOTSTRAP_DONE
    if new and not bootstrap.exists() and not done.exists():
        write_atomic(bootstrap, template(BOOTSTRAP_FILE), mode=0o644)
        write_lines(f"Wrote {bootstrap}: what your first talk with the SOUL is about.")


def _refuse_unwritable(home: Home) -> None:
    """Raise `StorageError` if `.env` cannot be written, before any question is asked."""
    try:
        if home.env.exists():
            return
        folder = next(folder for folder in (home.root, *home.root.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise storage_error(home.env, error) from error


@dataclass(slots=True)
class _Interview:
    """Asks for the missing settings of a home; `values` are those that are set, by lower-case name."""

    home: Home
    values: dict[str, str]
    _is_right: bool = field(default=True, init=False)

    def run(self) -> bool:
        """Ask all questions, and return whether all tested answers are right. Raises `ConfigError` if input ends."""
        write_lines(*(line.format(env=self.home.env) for line in _INTRODUCTION))
        try:
            self._ask(*_ABOUT)
            self._ask_until_right(_ACCOUNT, self._login)
            self._ask_owner()
            self._ask(*_MODEL, _DOLLARS)
            self._ask_price()
            self._ask(_KEY)
            self._ask_until_right((*_MODEL, _KEY), self._model)
            self._ask_price()  # another model may have been chosen meanwhile
            write_lines(_cost(settings_to_run(self.home.root)))
        except typer.Abort as refusal:
            kept = f"What you answered is kept in {self.home.env}; `soul init` asks for the rest."
            if not isinstance(refusal.__context__, EOFError):
                write_lines("", kept if self.home.env.exists() else "")
                raise
            write_lines("")
            raise ConfigError(
                "`soul init` asks questions, and its input ended before they were answered",
                remedy=kept if self.home.env.exists() else "Run it in a terminal.",
            ) from None
        self._ask_for_more()
        return self._is_right

    def _ask(self, *questions: SettingQuestion, again: bool = False) -> None:
        """Ask the questions without an answer, or with `again` all of them, and store each answer at once."""
        for question in questions:
            before = self.values.get(question.name.lower(), "")
            if before and not again:
                continue
            if question.is_explained:
                write_lines(*textwrap.wrap(explained_settings(template(".env.example"))[question.name].meaning, _WIDTH))
            hint = " (Enter keeps it)" if before and question.is_secret else ""
            answer = typer.prompt(
                f"{question.text}{hint}",
                default=before or question.default or None,
                hide_input=question.is_secret,
                show_default=not question.is_secret,
                value_proc=partial(_accepted, question),
            )
            self._keep(question.name, answer)

    def _keep(self, name: str, value: str) -> None:
        if not value:
            return
        self.values[name.lower()] = value
        is_new = not self.home.env.exists()
        text = template(".env.example") if is_new else self.home.env.read_text(encoding="utf-8-sig")
        write_atomic(self.home.env, with_values(text, {name: value}))

    def _ask_until_right(
        self, questions: Sequence[SettingQuestion], check: Callable[[Settings], Awaitable[Sequence[Finding]]]
    ) -> None:
        """Ask, test the answers, and ask again while they are wrong and the owner wants to correct them.

        A Bluesky service that answered is not asked for again.
        """
        self._ask(*questions)
        while not report(found := self._tried(check), as_json=False):
            if not confirmed("Correct it now?", default=True):
                self._is_right = False
                return
            is_unreached = any(_SERVICE.name in one.remedy for one in found)
            self._ask(*(one for one in questions if one is not _SERVICE or is_unreached), again=True)

    def _tried(self, check: Callable[[Settings], Awaitable[Sequence[Finding]]]) -> list[Finding]:
        settings = self._settings()
        clean = Redactor(settings.secrets).text
        write_lines("Trying it, which may take a minute …")
        found = asyncio.run(_all_of(check(settings)))
        return [Finding(one.check, one.level, clean(one.message), clean(one.remedy)) for one in found]

    def _settings(self) -> Settings:
        """Return the settings that are known so far."""
        return settings_of(self.values)[0]

    async def _login(self, settings: Settings) -> list[Finding]:
        from soul.commands.doctor import account_of, examine_login  # noqa: PLC0415 - takes time to load

        atproto = account_of(settings)
        try:
            return [await examine_login(atproto, settings)]
        finally:
            await atproto.aclose()

    async def _model(self, settings: Settings) -> list[Finding]:
        from soul.commands.doctor import ask_model  # noqa: PLC0415 - the same

        return await ask_model(settings, NoBudgetGuard(), is_short=True)

    async def _github(self, settings: Settings) -> list[Finding]:
        from soul.commands.doctor import examine_github  # noqa: PLC0415 - the same

        return await examine_github(settings, self.home)

    def _ask_owner(self) -> None:
        """Ask for the owner's handle and look up the DID; if the service does not know the handle, ask for both."""
        service, again = self.values[_SERVICE.name.lower()], False
        while not self.values.get(_OWNER_DID.name.lower()):
            self._ask(_OWNER, again=again)
            handle = self.values[_OWNER.name.lower()]
            if owner_mistake(self._settings()):
                write_lines("That is the SOUL's own handle; it needs yours, by which it knows whom to obey.")
                again = True
            elif found := resolve(service, handle):
                write_lines(f"Found your DID: {found}")
                self._keep(_OWNER_DID.name, found)
            else:
                write_lines(f"Could not look up the DID of {handle} at {service}.")
                again = confirmed("Correct the handle?", default=True)
                if not again:
                    self._ask(_OWNER_DID)

    def _ask_price(self) -> None:
        """Ask for the price of a model if no price is known and dollars are limited."""
        settings = self._settings()
        model, base_url = settings.ai_gateway_model, settings.ai_gateway_base_url
        if settings.budget_usd_per_day is not None and _price(model, settings.model_prices, base_url) is None:
            named = SettingQuestion(_PRICES.name, _PRICES.text, clean=lambda text: f"{model}={text.strip()}")
            self._ask(named, again=True)

    def _ask_for_more(self) -> None:
        """Ask the optional questions; the end of the input counts as no."""
        try:
            if confirmed("Give it a GitHub account of its own now, so that it can build with others?", default=False):
                self._ask_until_right(_GITHUB, self._github)
            self._ask(_ROOM)
        except typer.Abort as refusal:
            if not isinstance(refusal.__context__, EOFError):
                raise
            write_lines("")


async def _all_of(check: Awaitable[Sequence[Finding]]) -> Sequence[Finding]:
    return await check


def _accepted(question: SettingQuestion, text: str) -> str:
    """Return the answer as it is stored, "" for none. Raises `BadParameter` if `soul run` would refuse it."""
    if text.strip() in {"", _NONE}:
        if question.default == _NONE:
            return ""
        raise typer.BadParameter("An answer is needed")
    answer = question.clean(text).removeprefix("$") if question is _DOLLARS else question.clean(text)
    for mistake in settings_of({question.name.lower(): answer})[1]:
        if mistake.setting == question.name:
            raise typer.BadParameter(str(mistake))
    return answer


def _price(model: str, own: dict[str, tuple[float, float]], base_url: str) -> Price | None:
    return PriceList([model], own, base_url=base_url, now=SystemClock().now()).get(model)


def _cost(settings: Settings) -> str:
    """Return a line on what a day costs if all of its tokens are used, most of them as input."""
    model, tokens = settings.ai_gateway_model, settings.budget_tokens_per_day
    price = _price(model, settings.model_prices, settings.ai_gateway_base_url)
    used = f"A day may take {number(tokens)} tokens of {model} (BUDGET_TOKENS_PER_DAY)"
    if price is None:
        return f"{used}; what they cost is not known here: set MODEL_PRICES"
    written = tokens // _READ_PER_WRITTEN
    dollars = price.cost(tokens - written, written) / MICRO
    cap = settings.budget_usd_per_day
    most = dollars if cap is None else min(dollars, cap)
    at_most = "" if cap is None else f", and never more than {cap:.2f} (BUDGET_USD_PER_DAY)"
    return f"{used}: expect up to {most:.2f} US dollars{at_most}"
