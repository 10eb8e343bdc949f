"""The preferences of our own account, from wire JSON into our type. As forgiving as `convert`, and bounded."""

from __future__ import annotations

import re

from adapters.atproto.convert import Json, each, objects_of, text_of
from adapters.atproto.preference_types import AccountPreferences, MutedWord
from adapters.atproto.records import REPLY_RULES

MOST_LABELERS = 20
_MOST_WORDS = 1_000
_MOST_POSTS = 10_000
_MOST_RULES = 5
_DEFS = "app.bsky.actor.defs#"
_LIST_RULE = "app.bsky.feed.threadgate#listRule"
_NO_QUOTES = "app.bsky.feed.postgate#disableRule"
_DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]{1,200}")
_LIST = re.compile(r"at://[^/\s]+/app\.bsky\.graph\.list/[^/\s]+")
_RULE_NAMES = {kind: name for name, kind in REPLY_RULES.items()}


def account_preferences(answer: Json) -> AccountPreferences | None:
    """What the account chose; None if the answer holds no list of preferences."""
    if not isinstance(answer.get("preferences"), list):
        return None
    parts = objects_of(answer, "preferences")

    def all_of(kind: str, key: str) -> list[object]:
        lists = (part.get(key) for part in parts if text_of(part, "$type") == f"{_DEFS}{kind}")
        return [item for items in lists if isinstance(items, list) for item in items]

    hidden = [uri for uri in all_of("hiddenPostsPref", "items") if isinstance(uri, str)]
    labelers = [text_of(item, "did") for item in all_of("labelersPref", "labelers") if isinstance(item, dict)]
    labels = [part for part in parts if text_of(part, "$type") == f"{_DEFS}contentLabelPref"]
    hides = [part for part in labels if text_of(part, "visibility") == "hide" and text_of(part, "label")]
    settings = next((part for part in parts if text_of(part, "$type") == f"{_DEFS}postInteractionSettingsPref"), {})
    return AccountPreferences(
        muted_words=each(all_of("mutedWordsPref", "items")[:_MOST_WORDS], _muted_word),
        hidden_posts=frozenset(hidden[:_MOST_POSTS]),
        labelers=tuple(dict.fromkeys(did for did in labelers if _DID.fullmatch(did)))[:MOST_LABELERS],
        hidden_labels=frozenset((text_of(part, "label"), text_of(part, "labelerDid")) for part in hides[:_MOST_WORDS]),
        replies=_replies(settings),
        may_be_quoted=all(
            text_of(rule, "$type") != _NO_QUOTES for rule in objects_of(settings, "postgateEmbeddingRules")
        ),
    )


def _muted_word(item: Json) -> MutedWord | None:
    targets = item.get("targets")
    if not (value := text_of(item, "value").strip()):
        return None
    return MutedWord(
        value=value,
        in_text=isinstance(targets, list) and "content" in targets,
        spares_followed=text_of(item, "actorTarget") == "exclude-following",
        until=text_of(item, "expiresAt"),
    )


def _replies(settings: Json) -> tuple[str, ...] | None:
    """Who may reply: a rule that is not known lets nobody, beside those whom the others let."""
    if not isinstance(settings.get("threadgateAllowRules"), list):
        return None
    rules = objects_of(settings, "threadgateAllowRules")[:_MOST_RULES]
    named = (_rule(rule) for rule in rules)
    return tuple(dict.fromkeys(name for name in named if name))


def _rule(rule: Json) -> str:
    kind, named = text_of(rule, "$type"), text_of(rule, "list")
    if kind == _LIST_RULE:
        return named if _LIST.fullmatch(named) else ""
    return _RULE_NAMES.get(kind, "")
