"""The rules on public acts: consent, limits, repeats, and files that act with more rights than other code. Pure.

They take what was counted or found, and return a verdict.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

import regex

from adapters.atproto.richtext import detect_mentions, detect_urls, parse_bsky_post_url
from adapters.atproto.types import Actor, Post
from common.text.injections import asks_for_secrets, gives_orders
from common.text.strings import likeness, normalize_post_text
from common.wording import deed
from modules.services.inbox.received import ReceivedPost
from modules.services.outbox.bodies import DirectMessageBody, IntentKind, ReplyBody, SpaceChatBody
from modules.services.outbox.github_bodies import ContentsBody, OnGitHub, PushBody
from modules.services.outbox.rules import rules
from modules.services.outbox.rules.rules import EtiquetteRule, ReplyAdvice, TrustCircle, lower
from modules.services.outbox.types import UNMETERED_KINDS, Intent, ProposedAction, Verdict

_AT_ROOT = (
    *(".github/workflows/*", ".github/actions/*", ".github/dependabot.y*ml", ".github/renovate.json*"),
    *(".github/copilot-instructions.md", ".github/instructions/*", ".github/prompts/*", ".github/agents/*"),
    *(".circleci/*", ".buildkite/*", ".woodpecker/*", ".teamcity/*", ".semaphore/*", ".gitea/*", ".forgejo/*"),
    *("azure-pipelines*.y*ml", "bitbucket-pipelines.yml", "buildspec*.y*ml", "cloudbuild*.y*ml", "appveyor.yml"),
)
_ANYWHERE = (
    # other CI
    *(".gitlab-ci*.y*ml", "jenkinsfile*", ".travis.yml", ".drone.y*ml", ".woodpecker.y*ml", ".appveyor.yml"),
    # which third-party code is installed
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock"),
    *("poetry.lock", "uv.lock", "pdm.lock", "pipfile.lock", "pylock*.toml", "requirements*.lock", "conda-lock.y*ml"),
    *("cargo.lock", "go.sum", "gemfile.lock", "composer.lock", "flake.lock", "mix.lock", "pubspec.lock"),
    *("podfile.lock", "package.resolved", "packages.lock.json", "gradle.lockfile"),
    # where it is installed from, and what runs then
    *(".npmrc", ".yarnrc*", ".pnpmfile.*js", "bunfig.toml", "pip.conf", "pip.ini", ".pypirc", "uv.toml", ".condarc"),
    *(".gemrc", "nuget.config", ".cargo/config", ".cargo/config.toml", ".yarn/*", "renovate.json*", ".renovaterc*"),
    # what runs, or is fetched, by `git` or an editor
    *(".gitattributes", ".gitmodules", ".pre-commit-config.y*ml", ".husky/*", "lefthook.y*ml", ".lefthook.y*ml"),
    *(".envrc", ".devcontainer/*", ".devcontainer.json", ".vscode/*"),
    # who must approve changes, and instructions for agents
    *("codeowners", "agents.md", "claude*.md", "gemini.md", ".cursorrules", ".cursor/*", ".windsurfrules"),
    *(".windsurf/*", ".clinerules", ".clinerules/*", ".claude/*", ".gemini/*", ".codex/*", ".mcp.json"),
)


def first_trusted(paths: Iterable[str]) -> str:
    """Return the first path of a file that acts with more rights than other code, or ""."""
    return next((path for path in paths if _is_trusted(path.lower())), "")


def _is_trusted(path: str) -> bool:
    below = f"/{path}"
    return any(fnmatchcase(path, one) for one in _AT_ROOT) or any(fnmatchcase(below, f"*/{one}") for one in _ANYWHERE)


_BY_NAME = {rule.name: rule for rule in rules.ETIQUETTE_RULES}

NOTIFYING: frozenset[IntentKind] = frozenset({"reply", "like", "repost", "follow"})

_TICK_S = 0.001
_BY_OWNER = "the owner asked for it"
ABOUT_RIGHTS = "it answers what they asked about their own data"
_REACHED_US = {"mention": "they mentioned us", "reply": "they replied to us", "quote": "they quoted us"}
# NOTE(self): emoji contain combining characters of their own.
_NO_LETTERS = regex.compile(r"(?:[^\p{L}\p{M}\p{N}]|[\p{Variation_Selector}\p{Me}])+")
_NO_DIGITS = regex.compile(r"[\p{N}\s]+")


def authority(uri: str) -> str:
    """Return the DID (or handle) in the `at://` URI of a record; "" for anything else."""
    return lower(uri.removeprefix("at://").split("/", 1)[0]) if uri.startswith("at://") else ""


def addressee(act: ProposedAction | Intent) -> str:
    """Return whom an act reaches: a DID, or a handle in lower case."""
    if isinstance(act.body, DirectMessageBody):
        return act.body.to
    return act.target if act.kind == "follow" else authority(act.target)


def who_is_told(act: ProposedAction | Intent) -> str:
    """Return whom an act addresses: whom it reaches, or `told_to` for a reply below a post of the SOUL's own."""
    return (act.body.told_to if isinstance(act.body, ReplyBody) else "") or addressee(act)


def thread_root(action: ProposedAction, notice: ReceivedPost | None) -> str:
    """Return the URI of the root of the act's thread; "" if it is not known."""
    if isinstance(action.body, ReplyBody):
        return action.body.root.uri
    return notice.root_uri if notice else ""


def named_in(text: str) -> list[str]:
    """Return who is notified because a text names or quotes them: handles in lower case and DIDs, each once."""
    links = (parse_bsky_post_url(span.value) for span in detect_urls(text))
    names = [*(span.value for span in detect_mentions(text)), *(lower(link[0]) for link in links if link)]
    return list(dict.fromkeys(names))


def known_as(who: str, circle: TrustCircle) -> str:
    """Return why somebody may always be reached, or ""."""
    if who in circle.own:
        return "it is our own"
    if who in circle.owner:
        return "they are the owner"
    if who in circle.peers:
        return "they are a listed peer"
    return "they are a peer, by identity posts on both sides" if who in circle.found else ""


def consent(
    action: ProposedAction,
    circle: TrustCircle,
    notice: ReceivedPost | None,
    *,
    follows_us: bool,
    we_follow: bool = False,
) -> Verdict:
    """Return whether an act that notifies somebody has a reason. `notice` is how its target was received, if it was.

    Followers of the SOUL may be followed and liked, and those whom it follows may be liked, wherever it read the post.
    Without a reason, an act that waits for the owner's approval anyway is held: the approval would be the reason.
    """
    who = addressee(action)
    reason = _BY_OWNER if action.by_owner else known_as(who, circle)
    if not reason and action.kind in {"follow", "like"} and follows_us:
        reason = "they follow us"
    if not reason and action.kind == "like" and we_follow:
        reason = "we follow them"
    if not reason and action.kind != "follow":
        reason = _REACHED_US.get(notice.reason, "") if notice else ""
        if not reason and authority(thread_root(action, notice)) in circle.own:
            reason = "the thread is ours"
    name = rules.CONSENT.name
    if reason:
        return Verdict(name, reason=reason, value=who)
    is_follow = action.kind == "follow"
    why = "they neither follow us nor are a peer" if is_follow else f"nobody there asked us for a {deed(action.kind)}"
    return Verdict(name, _unless_owner(action), why, value=who)


def consent_by_name(action: ProposedAction, strangers: Sequence[str]) -> Verdict:
    """Return whether a text may name whom it names; `strangers` are those unknown who never wrote to the SOUL."""
    name = rules.CONSENT_BY_NAME.name
    if action.by_owner or not strangers:
        return Verdict(name, reason=_BY_OWNER if action.by_owner else "all who are named reached us, or belong to us")
    listed = ", ".join(f"@{one}" for one in strangers)
    reason = f"do not name or quote {listed}: they never spoke with us"
    return Verdict(name, _unless_owner(action), reason, value=listed)


def consent_without_commitment(action: ProposedAction, reason: str) -> Verdict:
    """Return the verdict on an act on GitHub that needs no commitment, with the reason."""
    return Verdict(rules.CONSENT_BY_COMMITMENT.name, reason=reason, value=repository(action))


def consent_by_commitment(action: ProposedAction, circle: TrustCircle) -> Verdict:
    """Return whether an act on GitHub or in the agent space has a recorded commitment and a permitted repository.

    Repositories of the SOUL or the owner are permitted, and those that the host of a room named. An act elsewhere, to
    which others in a room or on Bluesky led the SOUL, waits for the owner's approval.
    """
    name, place = rules.CONSENT_BY_COMMITMENT.name, repository(action)
    if action.by_owner:
        return Verdict(name, reason=_BY_OWNER, value=place)
    body = action.body
    if not isinstance(body, OnGitHub | SpaceChatBody) or not body.commitment_id:
        return Verdict(name, _unless_owner(action), action.hold or "no recorded commitment asks for it", value=place)
    in_room = body.source == "space"
    by_host = in_room and (body.host_named or body.host_request)
    if body.source == "bluesky" and body.host_request:
        return Verdict(name, reason=_BY_OWNER, value=place)
    if action.kind == "space_chat" or by_host:
        return Verdict(name, reason="it is a commitment of the agent space", value=place)
    if is_ours(place, circle):
        return Verdict(name, reason="it is a commitment, and the repository is ours or the owner's", value=place)
    if in_room:
        reason = "a commitment of the agent space for a repository of somebody else that the host did not name"
    else:
        reason = "a commitment to somebody who is neither a peer nor the owner, for a repository of somebody else"
    return Verdict(name, "hold", reason, value=place)


def workflow_files(action: ProposedAction) -> Verdict:
    """Return whether a change of files waits for the owner, because one of them acts with more rights than others."""
    name, body = rules.WORKFLOW_FILES.name, action.body
    paths = body.paths if isinstance(body, PushBody) else (body.path,) if isinstance(body, ContentsBody) else ()
    path = first_trusted(paths)
    if action.by_owner or not path:
        return Verdict(name)
    return Verdict(
        name, "hold", f"{path} runs in CI or at install, or decides what is installed or what agents do", value=path
    )


def consent_to_message(body: DirectMessageBody, circle: TrustCircle, *, other: str, author: str) -> Verdict:
    """Return whether a direct message has a reason.

    Args:
        body: the message.
        circle: whom the SOUL knows; the owner counts by DID only.
        other: the DID of the only other account in the conversation, "" if it is not known.
        author: the DID of whoever wrote the message that is answered, "" if it was never received.

    """
    name = rules.CONSENT_TO_MESSAGE.name
    if not other or other != body.to:
        return Verdict(name, "block", "it is not known to be a conversation with that account alone", value=body.to)
    if body.to in circle.owner:
        return Verdict(name, reason="they are the owner", value=body.to)
    if body.answers and author == body.to:
        return Verdict(name, reason="they wrote to us", value=body.to)
    return Verdict(name, "block", "they did not write to us first", value=body.to)


def repository(act: ProposedAction | Intent) -> str:
    """Return the repository of an act on GitHub, `owner/name`; "" for any other act."""
    return act.body.repo if isinstance(act.body, OnGitHub) else ""


def is_ours(place: str, circle: TrustCircle) -> bool:
    """Return whether a repository is the SOUL's or the owner's on GitHub, or a workspace of their organisation."""
    return place.partition("/")[0].lower() in circle.github or place.lower() in circle.workspaces


def is_for_owner(intent: Intent) -> bool:
    """Return whether an act is for the owner: they asked for it, or it answers them."""
    body = intent.body
    asked = isinstance(body, OnGitHub) and body.source == "bluesky" and body.host_request
    return intent.by_owner or intent.urgent or asked


def cost(kind: IntentKind) -> float:
    """Return what one try costs, in Bluesky's points."""
    if kind in UNMETERED_KINDS:
        return 0.0
    return (rules.COST_DELETE if kind == "delete" else rules.COST_CREATE).limit


def held_to(rule: EtiquetteRule, value: float, *, adds: float = 1, exempt: str = "") -> Verdict:
    """Return whether `adds` more would exceed the limit; with `exempt`, the reason to allow it, it passes anyway."""
    if exempt or value + adds <= rule.limit:
        return Verdict(rule.name, reason=exempt, value=value, limit=rule.limit)
    reason = f"{value:g} {rule.unit} already, the limit is {rule.limit:g}"
    return Verdict(rule.name, "block", reason, value, rule.limit)


def full(rule: EtiquetteRule) -> str:
    """Return why an act waits, as the reason of a `Wait`."""
    return f"{rule.name}: {rule.limit:g} {rule.unit} are enough for now"


def injection(action: ProposedAction, notice: ReceivedPost, exempt: str) -> Verdict:
    """Return whether an act on a post is allowed, given what the post demands of a model."""
    name = rules.INJECTION.name
    if exempt:
        return Verdict(name, reason=exempt)
    if gives_orders(notice.text):
        return Verdict(name, "block", "the post orders us to put our instructions aside")
    if action.kind != "reply" and asks_for_secrets(notice.text):
        return Verdict(name, "block", "the post wants what we keep to ourselves")
    return Verdict(name)


def strangers_rule(born_at: datetime | None, now: datetime, youth: timedelta) -> EtiquetteRule:
    """Return the limit on strangers for an account created at `born_at`, which counts as young for `youth`."""
    return rules.STRANGERS_YOUNG if born_at is None or now - born_at < youth else rules.STRANGERS


def why_exempt(action: ProposedAction, circle: TrustCircle) -> str:
    """Return why loops, reply limits and repeated posts do not matter: for the owner or a person's rights; else "".

    The answers about rights that a person may get are limited where the requests are read (`REQUESTS`).
    """
    if action.by_owner:
        return _BY_OWNER
    if is_about_rights(action.body):
        return ABOUT_RIGHTS
    return "they are the owner" if addressee(action) in circle.owner else ""


def is_about_rights(body: object) -> bool:
    """Return whether a body answers somebody's request about their own data."""
    return isinstance(body, ReplyBody | DirectMessageBody) and body.about_rights


@lru_cache(maxsize=4096)
def letters(text: str, *, digits: bool) -> str:
    """Return the bare words for comparison: no handles, links, case, punctuation or emoji, and digits on request.

    A text without any words stays as it is.
    """
    prose = _NO_LETTERS.sub(" ", normalize_post_text(unicodedata.normalize("NFKC", text)))
    bare = prose if digits else _NO_DIGITS.sub(" ", prose)
    return bare.strip() or text.strip()


def near_identical(one: ReceivedPost, other: ReceivedPost) -> bool:
    """Return whether two posts of one author say the same."""
    shorter = min(len(letters(text, digits=True)) for text in (one.text, other.text))
    if shorter < rules.REPOST_SHORT.limit and one.parent_uri != other.parent_uri:
        return False
    return says_the_same(one.text, other.text)


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts differ only in a few letters or digits."""
    return likeness(letters(one, digits=True), letters(other, digits=True)) >= rules.REPOST_LIKENESS.limit


def run_of(turns: Iterable[bool]) -> int:
    """Return how many turns there were since a person last spoke; `turns`, oldest first, are True if automated."""
    run = 0
    for automated in turns:
        run = run + 1 if automated else 0
    return run


def automated_run(posts: Sequence[Post], own_did: str, is_bot: Callable[[Actor], bool]) -> int:
    """Return how many posts at the end of a thread (oldest first) are automated, the SOUL's included."""
    return run_of(post.author.did == own_did or is_bot(post.author) for post in posts)


def frees_in_s(spent: Sequence[tuple[datetime, float]], excess: float, window: timedelta, now: datetime) -> float:
    """Return in how many seconds `excess` of what was `spent`, oldest first, is outside the window.

    Moments are whole milliseconds, rounded down.
    """
    freed, moment = 0.0, now
    for moment, amount in spent:  # noqa: B007 - used after the loop
        freed += amount
        if freed >= excess:
            break
    return max(0.0, (moment + window - now).total_seconds()) + _TICK_S


def with_advice(verdict: Verdict, real: Callable[[float], float]) -> Verdict:
    """Return the verdict; if it blocks, with what its rule would have done instead.

    A verdict of a rule with `later` without a time to try again gets the mean pause between two acts; `real` converts
    lived seconds to real ones.
    """
    if verdict.says != "block":
        return verdict
    rule = _BY_NAME[verdict.rule]
    if rule.instead == "later" and not verdict.retry_in_s:
        verdict = replace(verdict, retry_in_s=real(rule.window_s or 0.0) / rule.limit)
    return replace(verdict, instead=rule.instead)


def reply_advice(verdicts: Iterable[Verdict]) -> ReplyAdvice:
    """Return the advice from the verdicts on a reply: the strictest block decides."""
    against = [verdict for verdict in verdicts if verdict.says == "block"]
    for act in ("silence", "like", "later"):
        for verdict in against:
            if verdict.instead == act:
                return ReplyAdvice(act, f"{verdict.rule}: {verdict.reason}", verdict.retry_in_s)
    return ReplyAdvice()


def _unless_owner(action: ProposedAction) -> Literal["hold", "block"]:
    return "hold" if action.hold else "block"
