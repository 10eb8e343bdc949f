"""Which acts the words of an owner's public request can need, so that its turn offers these and no others. Pure.

Words are looked up one by one, in seven languages. Where a request is in words that none of the tables has, nothing is
known of it, and it may need any act; plain talk needs none.
"""

from __future__ import annotations

import re

from common.text.host_intent import asks_each, classify_host_intent_structural
from common.text.strings import normalize_quotes

REQUEST_TOOLS = frozenset(
    {"bluesky_post", "bluesky_post_limited", "bluesky_limit_replies", "bluesky_repost", "bluesky_follow"}
)
"""The tools that do what the owner asks for in public, and leave the answer to be given."""

_TOKEN = re.compile(r"[^\W\d_]+|[.,:;!?\n]")
_STOPS = frozenset(".,:;!?\n")
_NAMED = re.compile(r"@\S+|https?://\S+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FOLLOW = _words(
    "follow folge folgt folgen folgst sigue siga seguir sigues suis suivre suivez segue seguire segui volg volgen"
)
_POST = _words(
    "publish write say tell announce thought tweet toot skeet poste posten postest schreib schreibe schreiben schreibst"
    " veröffentliche veröffentlichen sag sage verkünde publica publicar publique escribe escribir escriba anuncia écris"
    " écrire écrivez publie publier publiez annonce escreve escreva escrever pubblica pubblicare scrivi scrivere"
    " schrijf schrijven plaats plaatsen"
)
_REPOST = _words("repost boost reshare retweet amplify spread reposte reposten weiterverbreite repostea difunde relaie")
_SHARE = _words(
    "share teile teilen teil comparte compartir comparta partage partager partagez compartilhe compartilhar partilhe"
    " condividi condividere deel delen"
)
"""A thought that is shared is posted, a post that is shared is reposted."""
_REPLIES = _words(
    "reply replies replying answer answers respond comment comments antworten antwortet antwort kommentieren responder"
    " respuestas répondre réponses respostas rispondere risposte reageren antwoorden"
)
_LIMITS = _words(
    "let only nobody noone none limit restrict lock close allow disable lass nur niemand begrenze sperre solo sólo"
    " nadie limita cierra seul seulement personne limite ferme apenas ninguém limitar fecha nessuno soltanto alleen"
    " beperk"
)
_GITHUB = _words("issue issues repo repository")
_ENGLISH = _words("the is are was what how why who when where which do does did you i")
"""Words of English talk."""
_BEFORE_A_VERB = _STOPS | _words("please pls kindly and or also then just now you to all each both can")
"""After one of these, or as the first word, "post" is a verb."""


def tools_for_request(text: str) -> frozenset[str]:
    """Return those of `REQUEST_TOOLS` that the owner's words in `text` can need; none for talk and for other work."""
    words = _read(text)
    known = frozenset(words)
    if (found := _named(words)) or known & _GITHUB or asks_each(text) or _is_talk(text, known):
        return found
    return REQUEST_TOOLS


def is_request(text: str) -> bool:
    """Return whether the owner's words in `text` ask for an act, as far as their form shows."""
    words = _read(text)
    return asks_each(text) or bool(_named(words) and not _ENGLISH.intersection(words))


def _read(text: str) -> list[str]:
    """The words and stops of `text`, without the accounts and addresses that it names."""
    return _TOKEN.findall(_NAMED.sub(" ", normalize_quotes(text)).lower())


def _named(words: list[str]) -> frozenset[str]:
    """The tools of whose acts there is a word."""
    known = frozenset(words)
    found = {"bluesky_follow"} if known & _FOLLOW else set[str]()
    limits = bool(known & _REPLIES and known & _LIMITS)
    posts = bool(known & _POST) or _has_verb_post(words)
    if known & (_REPOST | _SHARE):
        found.add("bluesky_repost")
    if posts or known & _SHARE:
        found.add("bluesky_post_limited" if limits else "bluesky_post")
    elif limits:
        found.add("bluesky_limit_replies")
    return frozenset(found)


def _has_verb_post(words: list[str]) -> bool:
    """Whether "post" stands as a verb, by the word before it."""
    before = (".", *words)
    return any(word == "post" and earlier in _BEFORE_A_VERB for earlier, word in zip(before, words, strict=False))


def _is_talk(text: str, known: frozenset[str]) -> bool:
    """Whether `text` is English talk; a question in another language may be a request."""
    return bool(known & _ENGLISH) and classify_host_intent_structural(_NAMED.sub(" ", text)).intent != "action_request"
