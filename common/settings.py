"""Settings: `.env` and the environment (which wins), validated once. `.env.example` explains each variable.

Unknown keys in `.env` are reported, because a misspelt one would leave the default in force.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import ParseResult, parse_qs, urlparse

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from common.clock import is_timezone
from common.constants import LLM_ANSWER_LONGEST_S, LLM_IDLE_TIMEOUT_S, SPACE_DEFAULT_PORT
from common.env_file import Given, env_file, given
from common.errors import ConfigError, SettingsError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


_ORGANISATION = re.compile(r"[A-Za-z0-9-]{1,39}")
_HANDLE = re.compile(r"([a-z0-9-]{1,63}\.){1,8}[a-z0-9-]{1,63}")
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")
_NAME_CHARS = 64
_HOURS = re.compile(r"([01]?[0-9]|2[0-3])-([01]?[0-9]|2[0-3])")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_REPOSITORY = re.compile(r"[\w.-]{1,100}", re.ASCII)
_PAGE_HOSTS = {"127.0.0.1", "localhost"}
_LOOPBACK = {*_PAGE_HOSTS, "::1"}
PAGE_TOKEN_CHARS = 32
_MAX_PORT = 65_535
_MODEL_PATH = "/chat/completions"
_ROOM_EXAMPLE = "ws://192.0.2.2:7777"
_ORIGIN_EXAMPLE = "http://192.0.2.2:8000"
_AS_SENT = "in small ASCII letters (an umlaut as `xn--…`), without a path and without the usual port (443 or 80)"
_COMPLAINTS = {
    "missing": "is missing",
    "bool_parsing": "must be on or off",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "float_parsing": "must be a number",
    "too_long": "must have at most {max_length} parts",
    "extra_forbidden": "is unknown",
    "json_invalid": "is no JSON",
    "union_tag_invalid": "must have as {discriminator} one of {expected_tags}, not '{tag}'",
}


def _http_url(value: str) -> str:
    parsed = _url(value, "http://127.0.0.1:8080")
    if parsed.scheme not in {"http", "https"} or not parsed.hostname:
        raise ValueError("must be a URL that starts with http:// or https://")
    return value.rstrip("/")


def _model_url(value: str) -> str:
    if value.endswith(_MODEL_PATH):
        raise ValueError(f"must leave out {_MODEL_PATH}, which is added to it")
    return value


def _space_url(value: str) -> str:
    """Validate a room's URL, used unchanged; without a port 80 or 443 apply, for a room behind a web server."""
    if not value:
        return value
    parsed = _url(value, _ROOM_EXAMPLE)
    if parsed.scheme not in {"ws", "wss"} or not parsed.hostname:
        raise ValueError(f"must be a URL such as {_ROOM_EXAMPLE}")
    return value


def _url(value: str, example: str) -> ParseResult:
    """Return the parts of a URL whose host can be looked up, and whose port, if any, is valid."""
    try:
        parsed = urlparse(value)
        (parsed.hostname or "").encode("idna")
        port = parsed.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"must be a URL such as {example}, with a host name and a port from 1 to {_MAX_PORT}")
    return parsed


def _did(value: str) -> str:
    if not value.startswith("did:"):
        raise ValueError("must be a DID such as did:plc:abc123")
    return value


def _tidied(value: str) -> str:
    return value.strip().removeprefix("@").lower()


def _handle(value: str) -> str:
    if not _HANDLE.fullmatch(handle := _tidied(value)):
        raise ValueError("must be a handle such as ada.bsky.social")
    return handle


def _login(value: str) -> str:
    """Validate what Bluesky's login takes."""
    account = _tidied(value)
    if not (_HANDLE.fullmatch(account) or _EMAIL.fullmatch(account) or account.startswith("did:")):
        raise ValueError("must be a handle such as rowan.bsky.social, or the e-mail address or DID of the account")
    return account


def _agent_name(value: str) -> str:
    if len(value) > _NAME_CHARS or len(value.splitlines()) != 1:
        raise ValueError(f"must be one line of 1 to {_NAME_CHARS} characters")
    return value


def _zone(value: str) -> str:
    if not is_timezone(value):
        raise ValueError("must be an IANA time zone such as Europe/Lisbon")
    return value


def _organisation(value: str) -> str:
    if value and not _ORGANISATION.fullmatch(value):
        raise ValueError("must be the name of an organisation on GitHub, such as acme")
    return value


def _repository_name(value: str) -> str:
    owner, _, name = value.partition("/")
    if not _ORGANISATION.fullmatch(owner) or not _REPOSITORY.fullmatch(name):
        raise ValueError("must be a repository on GitHub, such as acme/template")
    return value


Organisation = Annotated[str, AfterValidator(_organisation)]
RepositoryName = Annotated[str, AfterValidator(_repository_name)]
RepositoryOrNone = Annotated[str, AfterValidator(lambda value: value and _repository_name(value))]
TimeZone = Annotated[str, AfterValidator(_zone)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
ModelUrl = Annotated[HttpUrl, AfterValidator(_model_url)]
SpaceUrl = Annotated[str, AfterValidator(_space_url)]


def _header_key(value: object) -> object:
    if isinstance(value, str) and not (value.isascii() and value.isprintable()):
        raise ValueError("has a character that no key has, such as a typographic quote or a line end: copy it again")
    return value


def _languages(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not all(map(_LANGUAGE.fullmatch, found)):
        raise ValueError("must be language codes such as en or pt-BR, separated by commas")
    return found


def _handles(value: object) -> object:
    return tuple(_tidied(part) for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _prices(value: object) -> object:
    """Parse `model=input/output` pairs, in US dollars per million tokens."""
    if not isinstance(value, str):
        return value
    prices: dict[str, tuple[float, float]] = {}
    for part in filter(None, (part.strip() for part in value.split(","))):
        model, _, price = part.rpartition("=")
        given, _, taken = price.partition("/")
        try:
            prices[model.strip()] = (float(given), float(taken))
        except ValueError:
            raise ValueError("must look like model=0.15/0.60, in dollars per million tokens in/out") from None
    if any(not model or min(price) < 0 for model, price in prices.items()):
        raise ValueError("must name a model and prices of at least 0 for each entry")
    return prices


def _room_port(value: object) -> object:
    text = value.strip() if isinstance(value, str) else str(value)
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_PORT)) and int(text) <= _MAX_PORT):
        raise ValueError(f"must be a port from 1 to {_MAX_PORT}, or 0 for a free one")
    return int(text)


def _origins(value: object) -> object:
    """Parse origins as a browser sends them."""
    if not isinstance(value, str):
        return value
    origins = tuple(part.strip() for part in value.split(",") if part.strip())
    for origin in origins:
        if not _is_origin(origin, "http", "https"):
            raise ValueError(f"must be origins such as {_ORIGIN_EXAMPLE}, separated by commas, {_AS_SENT}")
    return origins


def _is_origin(value: str, *schemes: str) -> bool:
    """Return whether a browser sends this origin: scheme and host, a port only if it is not the usual one, no more."""
    parsed = _url(value, _ORIGIN_EXAMPLE)
    port = "" if parsed.port in {None, 443 if parsed.scheme == "https" else 80} else f":{parsed.port}"
    host = f"[{parsed.hostname}]" if ":" in (parsed.hostname or "") else parsed.hostname
    return parsed.scheme in schemes and bool(host) and value.isascii() and value == f"{parsed.scheme}://{host}{port}"


def _quiet_hours(value: object) -> object:
    """Return the hours at which they begin and end; None for none."""
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if value and not found:
        raise ValueError("must be two hours of the day such as 22-7")
    return found and tuple(map(int, found.groups()))


def _public_origin(value: str) -> str:
    """Validate the origin at which a browser reaches a page through a proxy with TLS."""
    if value and not _is_origin(value, "https"):
        raise ValueError(f"must be an origin such as https://soul.example.org, {_AS_SENT}; a proxy speaks TLS there")
    return value


HeaderKey = BeforeValidator(_header_key)
RoomPort = Annotated[int, BeforeValidator(_room_port)]
Languages = Annotated[tuple[str, ...], BeforeValidator(_languages), Field(max_length=3)]
Handles = Annotated[tuple[str, ...], BeforeValidator(_handles)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_origins)]
QuietHours = Annotated[tuple[int, int] | None, BeforeValidator(_quiet_hours)]
Origin = Annotated[str, AfterValidator(_public_origin)]
Prices = Annotated[dict[str, tuple[float, float]], BeforeValidator(_prices)]
Approval = Literal["off", "strangers", "drafts"]
MessagesFrom = Literal["owner", "following", "all"]
MessageDeclaration = Literal["missing", "always", "off"]
Vision = Annotated[Literal["on", "off", "auto"], BeforeValidator(_lower)]
Did = Annotated[str, AfterValidator(_did)]
Handle = Annotated[str, AfterValidator(_handle)]
Login = Annotated[str, AfterValidator(_login)]
AgentName = Annotated[str, AfterValidator(_agent_name)]


class _Given(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class RoomSettings(_Given):
    """The settings with which `soul space` opens a room."""

    space_name: str = ""
    space_port: RoomPort = SPACE_DEFAULT_PORT
    space_token: SecretStr = SecretStr("")
    space_origins: Origins = ()


class Settings(RoomSettings):
    """All settings of the owner, one field per variable of `.env.example`."""

    agent_name: AgentName
    owner_bluesky_social_handle: Handle
    owner_bluesky_social_handle_did: Did
    owner_is_visitor: bool = False

    agent_bluesky_username: Login
    agent_bluesky_password: SecretStr = Field(min_length=1)
    atproto_service_url: HttpUrl = "https://bsky.social"
    post_languages: Languages = ("en",)

    agent_github_username: str = ""
    agent_github_token: Annotated[SecretStr, HeaderKey] = SecretStr("")
    owner_github_username: str = ""
    github_api_url: HttpUrl = "https://api.github.com"
    workspace_org: Organisation = ""
    workspace_template: RepositoryName = "internet-development/www-sacred"

    arena_api_url: HttpUrl = "https://api.are.na/v2"

    space_url: SpaceUrl = ""
    space_discovery: bool = True

    ai_gateway_api_key: Annotated[SecretStr, HeaderKey] = Field(min_length=1)
    ai_gateway_base_url: ModelUrl = "https://ai-gateway.vercel.sh/v1"
    ai_gateway_model: str = Field(default="openai/gpt-5.2", min_length=1)
    ai_gateway_model_cheap: str = ""
    ai_gateway_vision: Vision = "auto"
    ai_gateway_facts: bool = False
    ai_gateway_idle_timeout_s: float = Field(default=LLM_IDLE_TIMEOUT_S, ge=1, le=LLM_ANSWER_LONGEST_S)
    context_tokens: int = Field(default=200_000, ge=2_000)
    bootstrap_max_tokens: int = Field(default=40_000, ge=500)

    budget_tokens_per_day: int = Field(default=2_000_000, ge=0)
    budget_usd_per_day: float | None = Field(default=None, ge=0)
    model_prices: Prices = {}

    improvement_min_hours: int = Field(default=24, ge=0, le=720)
    improvement_burn_in_ms: int = Field(default=172_800_000, ge=0)
    soul_maker_repository: RepositoryOrNone = ""
    soul_program_repository: RepositoryOrNone = ""
    soul_program_minutes: float = Field(default=30, gt=0, le=60)
    soul_program_memory_mb: int = Field(default=6_144, ge=256)
    reading_per_day: int = Field(default=4, ge=0, le=24)

    soul_coding: bool = True
    coding_steps: int = Field(default=100, ge=1, le=500)
    coding_tokens: int = Field(default=1_500_000, ge=1_000)
    coding_usd: float | None = Field(default=None, gt=0)
    coding_minutes: float = Field(default=60, gt=0, le=120)
    coding_suite_minutes: float = Field(default=10, gt=0, le=30)
    coding_network: bool = False
    coding_builds: bool = False
    soul_merge_alone: bool = False
    coding_npm_registry: HttpUrl | Literal[""] = ""
    coding_python_index: HttpUrl | Literal[""] = ""
    coding_cargo_registry: HttpUrl | Literal[""] = ""
    coding_go_proxy: HttpUrl | Literal[""] = ""
    soul_peers: Handles = ()
    peer_unfollow_cooldown: float = Field(default=7, ge=0)
    soul_bot_label: bool = True
    operator_contact: str = Field(default="", max_length=200)
    version_check_url: HttpUrl | Literal[""] = ""
    soul_approval: Approval = "off"
    soul_approval_room: bool = False
    soul_announce: bool = False
    sleep: bool = True
    sleep_watch_url: HttpUrl | Literal[""] = ""
    heartbeat_hours: float = Field(default=6, ge=0, le=168)
    soul_direct_messages: bool = True
    soul_messages_from: MessagesFrom = "following"
    soul_message_declaration: MessageDeclaration = "missing"

    storage_url: str = ""
    storage_access_key_id: Annotated[str, HeaderKey] = ""
    storage_secret_access_key: SecretStr = SecretStr("")
    soul_workspace: Literal["home", "store"] = "home"
    boot_context_tokens: int = Field(default=4_000, ge=1_000)
    boot_context_export: Path | None = None

    alarm_url: HttpUrl | Literal[""] = ""
    alarm_quiet_hours: QuietHours = None
    dashboard_port: RoomPort = 7790
    dashboard_host: str = Field(default="127.0.0.1", min_length=1)
    dashboard_token: SecretStr = SecretStr("")
    dashboard_origin: Origin = ""

    memory_dir: Path | None = None
    soul_timezone: TimeZone = ""
    soul_speed: float = Field(default=1.0, gt=0, le=1000)
    soul_allow_private_net: bool = False
    soul_unsafe_exec: bool = False

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never leave this process."""
        values = (
            *(value.get_secret_value() for _, value in self if isinstance(value, SecretStr)),
            *parse_qs(urlparse(self.space_url).query).get("token", []),
            self.alarm_url,
            self.agent_bluesky_username if _EMAIL.fullmatch(self.agent_bluesky_username) else "",
        )
        return tuple(value for value in values if value)

    def own_handle(self) -> str:
        """Return the handle by which the SOUL logs in; "" if it does so by an e-mail address or a DID."""
        return self.agent_bluesky_username if _HANDLE.fullmatch(self.agent_bluesky_username) else ""

    def on_loopback(self) -> bool:
        """Return whether the social network is on this machine."""
        return urlparse(self.atproto_service_url).hostname in _LOOPBACK

    def home_service_url(self) -> str:
        """Return the URL of the social network if it is on this machine; else ""."""
        return self.atproto_service_url if self.on_loopback() else ""


def load_settings(home: Path, content: bytes | None = None) -> Settings:
    """Read `<home>/.env`, or `content` in its place, and the environment.

    Raises:
        SettingsError: with every variable that is missing or wrong, and the remedy.
        ConfigError: there is no SOUL in `home`.

    """
    settings, mistakes = read_settings(home, content)
    if mistakes:
        raise SettingsError(mistakes)
    return settings


class _AtHand(Settings):
    model_config = ConfigDict(validate_assignment=True)


_BLANK: dict[str, Any] = {
    name: SecretStr("") if field.annotation is SecretStr else ""
    for name, field in Settings.model_fields.items()
    if field.is_required()
}


def read_settings(home: Path, content: bytes | None = None) -> tuple[Settings, list[ConfigError]]:
    """Read what can be read, with one error for each mistake.

    A wrong variable counts as not set; a required one that is missing is empty.

    Raises:
        ConfigError: there is no SOUL in `home`, and none was begun there.

    """
    found, file = given(home, content), env_file(home)
    if content is None and not (file.exists() or found.values.get("agent_name") or (home / ".memory").is_dir()):
        if home.exists() and not home.is_dir():
            remedy = f"Name its folder, such as `--home {shlex.quote(str(home.parent))}`."
            raise ConfigError(f"There is no SOUL here: {home.absolute()} is a file", remedy=remedy)
        lacks = f"has no {file.name}" if home.is_dir() else "does not exist"
        raise ConfigError(f"There is no SOUL here: the folder {home.absolute()} {lacks}", remedy=explained_by(home, ""))
    settings, mistakes = settings_of(found.values)
    mistakes = [*_unread(Settings, home, found), *mistakes]
    if settings.soul_speed != 1 and not settings.on_loopback():
        told = "SOUL_SPEED other than 1 is only for a network on this machine"
        remedy = "Remove SOUL_SPEED from .env, or point ATPROTO_SERVICE_URL at the town."
        mistakes.append(ConfigError(told, remedy=remedy, setting="SOUL_SPEED"))
    mistakes += filter(None, (owner_mistake(settings), page_mistake(settings)))
    for mistake in mistakes:
        mistake.remedy = mistake.remedy or explained_by(home, mistake.setting)
    return settings, mistakes


def owner_mistake(settings: Settings, own_did: str = "") -> ConfigError | None:
    """Return an error if the SOUL would be its own owner, by its handle or by `own_did`, as far as known."""
    owner, did = settings.owner_bluesky_social_handle.lower(), settings.owner_bluesky_social_handle_did
    if not (owner and owner == settings.agent_bluesky_username.lower()) and not (own_did and did == own_did):
        return None
    return ConfigError(
        f"OWNER_BLUESKY_SOCIAL_HANDLE is the SOUL's own account, @{settings.agent_bluesky_username}",
        remedy="A SOUL cannot be its own owner: `soul config set OWNER_BLUESKY_SOCIAL_HANDLE` with your own handle.",
        setting="OWNER_BLUESKY_SOCIAL_HANDLE",
    )


def page_mistake(settings: Settings) -> ConfigError | None:
    """Return an error if the owner's page would be reachable from elsewhere without TLS, or without a good token."""
    if not settings.dashboard_origin:
        if settings.dashboard_host in _PAGE_HOSTS:
            return None
        told, setting = "DASHBOARD_HOST beyond this machine needs DASHBOARD_ORIGIN", "DASHBOARD_HOST"
        return ConfigError(told, remedy="Set DASHBOARD_ORIGIN to the https:// origin of your proxy.", setting=setting)
    if len(settings.dashboard_token.get_secret_value()) >= PAGE_TOKEN_CHARS:
        return None
    return ConfigError(
        f"DASHBOARD_ORIGIN needs a DASHBOARD_TOKEN of at least {PAGE_TOKEN_CHARS} characters",
        remedy="Set DASHBOARD_TOKEN first; `openssl rand -hex 24` makes one.",
        setting="DASHBOARD_ORIGIN",
    )


def settings_of(values: Mapping[str, str]) -> tuple[Settings, list[ConfigError]]:
    """Return the settings from the valid ones among `values`, by lower-case name, and the mistakes."""
    try:
        return Settings.model_validate(values), []
    except ValidationError as error:
        mistakes = _mistakes(error)
    settings = _AtHand.model_construct(None, **_BLANK)
    wrong = {mistake.setting.lower() for mistake in mistakes}
    for name, value in values.items():
        if name in Settings.model_fields and name not in wrong:
            setattr(settings, name, value)
    return settings, mistakes


def load_room_settings(home: Path) -> RoomSettings:
    """Read the settings of a room from `<home>/.env` and the environment; none of them is required.

    Raises:
        SettingsError: with every variable that is wrong, and the remedy.

    """
    found = given(home)
    mistakes = _unread(RoomSettings, home, found)
    try:
        settings = RoomSettings.model_validate(found.values)
    except ValidationError as error:
        mistakes += _mistakes(error)
    if mistakes:
        for mistake in mistakes:
            mistake.remedy = mistake.remedy or explained_by(home, mistake.setting)
        raise SettingsError(mistakes)
    return settings


def explained_by(home: Path, name: str) -> str:
    """Return how to correct a setting."""
    file = env_file(home)
    if name not in os.environ and not file.exists():
        return f"Name the folder of a SOUL, or make one here: `soul init --home {shlex.quote(str(home))}`."
    where = "the environment" if name in os.environ else str(file)
    return f"Correct it in {where}; `soul config get NAME` explains a setting."


def _unread(kind: type[_Given], home: Path, found: Given) -> list[ConfigError]:
    """Return errors for what in the file cannot be read."""
    bare = [name for name in found.bare if name.lower() in kind.model_fields]
    told = f"stands in {env_file(home)} without a value"
    return [
        *found.problems,
        *(ConfigError(f"{name} {told}", remedy=f"Write {name}=value.", setting=name) for name in bare),
    ]


def _mistakes(error: ValidationError) -> list[ConfigError]:
    """Return one error for each wrong setting; if it allows several forms, only the first complaint is reported."""
    told: dict[str, ConfigError] = {}
    for item in error.errors():
        name = str(item["loc"][0]).upper()
        told.setdefault(name, ConfigError(f"{name} {complaint(item)}", setting=name))
    return list(told.values())


def complaint(item: ErrorDetails) -> str:
    """Return what is wrong with a value, as the end of a sentence that begins with its name."""
    if plain := _COMPLAINTS.get(item["type"]):
        return plain.format(**item.get("ctx", {}))
    _, _, rule = item["msg"].partition(" should ")
    return f"must {rule}" if rule else item["msg"].removeprefix("Value error, ")


KNOWN = tuple(name.upper() for name in Settings.model_fields)

_OURS = (
    "AGENT_BLUESKY_",
    "AGENT_GITHUB_",
    "AI_GATEWAY_",
    "ATPROTO_",
    "BOOT_CONTEXT_",
    "BUDGET_",
    "OWNER_BLUESKY_",
    "OWNER_GITHUB_",
    "SOUL_",
    "SPACE_",
    "WORKSPACE_",
)
_NEARLY_THE_SAME = 0.85
_SIMILAR = 0.6


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that no setting has, and the most similar setting, "" if none is similar."""

    name: str
    meant: str

    def __str__(self) -> str:
        question = f"; did you mean {self.meant}?" if self.meant else ""
        return f"{self.name} is no setting{question}"


def unknown_among(names: Iterable[str], *, prefixes: tuple[str, ...]) -> tuple[UnknownKey, ...]:
    """Return the unknown ones among `names`: all that begin with one of `prefixes`, and those that look misspelt."""
    given = list(names)
    there = {name.upper() for name in given}
    found = []
    for name in given:
        upper = name.upper()
        if upper in KNOWN:
            continue
        is_ours = upper.startswith(prefixes)
        similar = _similar(upper, _SIMILAR if is_ours else _NEARLY_THE_SAME)
        if is_ours or any(known not in there for known in similar):
            found.append(UnknownKey(name, similar[0] if similar else ""))
    return tuple(found)


def unknown_keys(home: Path, *, of: str = "", content: bytes | None = None) -> list[ConfigError]:
    """Return an error for each key of `<home>/.env`, or of `content` in its place, that no setting has.

    In the file only keys that are meant for us count, in the environment only what looks misspelt. With `of`, only
    those with this prefix, or similar to a setting with it.
    """
    in_file = unknown_among(given(home, content).names, prefixes=_OURS)
    return [
        ConfigError(str(one), remedy=explained_by(home, one.name), setting=one.name)
        for one in (*in_file, *unknown_among(os.environ, prefixes=()))
        if one.name.startswith(of) or one.meant.startswith(of)
    ]


@lru_cache(maxsize=1024)
def _similar(name: str, least: float = _SIMILAR) -> tuple[str, ...]:
    """Return the settings whose names are similar to `name`, by a ratio of at least `least`, the most similar first."""
    return tuple(get_close_matches(name, KNOWN, n=len(KNOWN), cutoff=least))
