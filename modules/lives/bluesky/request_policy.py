"""Which acts the words of an owner's public request can need, so that its turn offers these and no others. Pure.

Words are looked up one by one, in seven languages. Where a request is in words that none of the tables has, nothing is
known of it, and it may need any act; plain talk needs none. Where one act is asked for beyond doubt, also by the place
of its verb, that act comes first (`act_to_do_first`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from common.text.host_intent import asks_each, classify_host_intent_structural
from common.text.strings import normalize_quotes

REQUEST_TOOLS = frozenset(
    {
        "bluesky_post",
        "bluesky_post_limited",
        "bluesky_limit_replies",
        "bluesky_repost",
        "bluesky_follow",
        "bluesky_unfollow",
    }
)
"""The tools that do what the owner asks for in public, and leave the answer to be given."""

_TOKEN = re.compile(r"[^\W\d_]+|[.,:;!?¿¡\n]")
_STOPS = frozenset(".,:;!?¿¡\n")
_CLAUSE_ENDS = _STOPS - {":", ";"}
_NAMED = re.compile(r"@\S+|https?://\S+")
_ASKED_AND_FOLLOWED = 2


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FOLLOW = _words(
    "follow folge folgt folgen folgst sigue siga seguir sigues suis suivre suivez segue seguire segui volg volgen"
)
_UNFOLLOW = _words("unfollow entfolge entfolgen entfolgt ontvolg ontvolgen")
_FOLLOWING = _FOLLOW | {"following"}
_NO_MORE = tuple(
    map(
        _words,
        (
            *("stop", "no longer", "nicht mehr", "niet meer", "ne plus", "deja", "dejad", "dejar", "deixa", "deixe"),
            *("pare", "smetti", "smettere", "arrête", "arrêtez"),
        ),
    )
)
"""With all words of one of these a verb of following asks for the end of a follow."""
_POST = _words(
    "publish write say tell announce tweet toot skeet poste posten postest schreib schreibe schreiben schreibst"
    " veröffentliche veröffentlichen sag sage verkünde publica publicar publique escribe escribir escriba anuncia écris"
    " écrire écrivez publie publier publiez annonce escreve escreva escrever pubblica pubblicare scrivi scrivere"
    " schrijf schrijven plaats plaatsen"
)
_SAY = _words("say tell write announce sag sage schreib schreibe escribe écris scrivi escreve schrijf")
_FOR_ASKER = _words(
    "me us back mir uns moi nous what how why who when where which was wie warum wer wo comment cosa wat hoe qué cómo"
)
"""Right after a verb of saying, or after "to", one of these shows that words for the asker are meant, and no post."""
_TO = _words("to an a à aan")
_THOUGHT = _words(
    "thought thoughts idea something gedanken gedanke etwas pensamiento idea algo pensée quelque pensamento pensiero"
    " qualcosa gedachte iets"
)
_POSTED = _words("post posts beitrag publicación publication publicação bericht")
_REPOST = _words("repost boost reshare retweet amplify spread reposte reposten weiterverbreite repostea difunde relaie")
_SHARE = _words(
    "share teile teilen teil comparte compartir comparta partage partager partagez compartilhe compartilhar partilhe"
    " condividi condividere deel delen"
)
"""A thought that is shared is posted, a post that is shared is reposted; where neither is named it may be both."""
_REPLIES = _words(
    "reply replies replying answer answers respond comment comments antworten antwortet antwort kommentieren responder"
    " respuestas répondre réponses respostas rispondere risposte reageren antwoorden"
)
_LIMITING = _words(
    "let limit restrict lock close allow disable lass begrenze sperre limita limitar cierra limite ferme fecha beperk"
)
_LIMITS = _LIMITING | _words(
    "only nobody noone none nur niemand niemanden solo sólo nadie seul seulement personne apenas ninguém nessuno"
    " soltanto alleen"
)
_WORKSPACE = _words("workspace workspaces")
_GITHUB = _words("issue issues repo repository") | _WORKSPACE
_SHARED_WORK = _words("plan plans") | _WORKSPACE
_MAKE = _words("make open create write start begin build draw set need want")
"""Words by which a workspace or a plan is asked for."""
_VERBS = {
    "bluesky_follow": _FOLLOW,
    "bluesky_unfollow": _UNFOLLOW,
    "bluesky_post": _POST | _SHARE | {"post"},
    "bluesky_post_limited": _POST | _SHARE | {"post"},
    "bluesky_repost": _REPOST | _SHARE,
    "bluesky_limit_replies": _LIMITING,
}
_ENGLISH = _words("the is are was what how why who when where which do does did you i any")
"""Words of English talk."""
_LEADS = _words(
    "please pls kindly hey hi hello ok okay so and or also then now just bitte doch mal jetzt auch und por favor ahora"
    " y s il te vous plaît e per favore ora alsjeblieft graag nu en et maintenant agora"
)
"""What may stand before an imperative in its clause."""
_MODALS, _YOU, _WANTS = _words("can could would will kun zou"), (["you"], ["je"]), _words("like want need")
_ASKS_YOU = _words(
    "kannst könntest würdest könnt puedes podrías podéis peux pourrais pouvez pourriez podes poderias puoi potresti"
)
"""Verbs in the second person: what follows in their clause is asked of the reader."""
_NOT_AFTER = _words("nicht nichts nie niet niets nooit pas")
_NOT = _NOT_AFTER | _words("not don t never ne jamais não nunca non mai without stop")
_ASKED = _words("du ihr je jij jullie tu vous vosotros voi você vocês")
"""Right after a verb that begins its clause one of these makes a question of it: "folgst du …?"."""
_NO_FOLLOW = _words("up through along")
_ONE_OF = frozenset(
    {
        *(("one", "of"), ("any", "of"), ("either", "of"), ("who", "of"), ("which", "of")),
        *(("einer", "von"), ("eine", "von"), ("eines", "von"), ("wer", "von"), ("uno", "de"), ("una", "de")),
        *(("quién", "de"), ("un", "de"), ("une", "de"), ("qui", "de"), ("um", "de"), ("um", "dos"), ("uno", "di")),
        *(("een", "van"), ("wie", "van")),
    }
)
_SOMEBODY = _words("someone somebody anyone anybody jemand alguien alguém qualcuno iemand quelqu")
_BEFORE_A_VERB = _STOPS | _words("please pls kindly and or also then just now you to all each both can")
"""After one of these, or as the first word, "post" is a verb."""


def tools_for_request(text: str) -> frozenset[str]:
    """Return those of `REQUEST_TOOLS` that the owner's words in `text` can need; none for talk and for other work."""
    words = _read(text)
    known = frozenset(words)
    if (found := _named(words)) or known & _GITHUB or asks_each(text) or _is_talk(text, known):
        return found
    return REQUEST_TOOLS


def act_to_do_first(text: str) -> str:
    """Return the one of `REQUEST_TOOLS` that the owner's words in `text` ask for beyond doubt; "" if there is none.

    They ask for this act and for no other work, deny nothing, and name whom to follow or to follow no more.
    """
    words = _read(text)
    tools = _named(words)
    if len(tools) != 1 or not (_GITHUB | _SHARED_WORK).isdisjoint(words):
        return ""
    (tool,) = tools
    if tool in {"bluesky_follow", "bluesky_unfollow"} and len(_NAMED.findall(text)) < _ASKED_AND_FOLLOWED:
        return ""
    return tool if any(_asks_for(tool, clause) for clause in _clauses(words)) else ""


def asks_all(text: str) -> bool:
    """Return whether the owner's words in `text` ask everybody whom they name to act, and not just one of them."""
    if asks_each(text):
        return True
    words = _read(text)
    is_for_one = not _SOMEBODY.isdisjoint(words) or not _ONE_OF.isdisjoint(pairwise(words))
    return not is_for_one and bool(act_to_do_first(text))


def names_shared_work(text: str) -> bool:
    """Return whether the owner's words in `text` name a workspace or a plan, which they may ask for."""
    return not _SHARED_WORK.isdisjoint(_read(text))


def asks_for_shared_work(text: str) -> bool:
    """Return whether the owner's words in `text` ask for a workspace or a plan to be made, as far as their form shows.

    Those whom such a post names do it one after the other, each over what the others made.
    """
    if not names_shared_work(text) or _MAKE.isdisjoint(_read(text)):
        return False
    found = classify_host_intent_structural(_NAMED.sub(" ", text))
    return found.intent == "action_request" or found.confidence == "ambiguous"


def is_request(text: str) -> bool:
    """Return whether the owner's words in `text` ask for an act, as far as their form shows."""
    words = _read(text)
    named = bool(_named(words) and not _ENGLISH.intersection(words))
    return asks_each(text) or named or bool(act_to_do_first(text))


def _read(text: str) -> list[str]:
    """The words and stops of `text`, without the accounts and addresses that it names."""
    return _TOKEN.findall(_NAMED.sub(" ", normalize_quotes(text)).lower())


def _named(words: list[str]) -> frozenset[str]:
    """The tools of whose acts there is a word."""
    known = frozenset(words)
    found = set[str]()
    if known & _UNFOLLOW or (known & _FOLLOWING and any(said <= known for said in _NO_MORE)):
        found.add("bluesky_unfollow")
    elif known & _FOLLOW:
        found.add("bluesky_follow")
    limits = bool(known & _REPLIES and known & _LIMITS)
    shares, thought = bool(known & _SHARE), bool(known & _THOUGHT)
    # NOTE(self): what is written or announced where a workspace is named is mostly a plan there, and no post.
    posts = bool(known & _POST and not known & _WORKSPACE) or _has_verb_post(words)
    if known & _REPOST or (shares and not thought):
        found.add("bluesky_repost")
    if posts or (shares and (thought or not known & _POSTED)):
        found.add("bluesky_post_limited" if limits else "bluesky_post")
    elif limits:
        found.add("bluesky_limit_replies")
    return frozenset(found)


def _clauses(words: list[str]) -> Iterator[list[str]]:
    """Yield the words between the ends of clauses."""
    clause: list[str] = []
    for word in (*words, "."):
        if word not in _CLAUSE_ENDS:
            clause.append(word)
        elif clause:
            yield clause
            clause = []


def _asks_for(tool: str, clause: list[str]) -> bool:
    """Whether `clause` asks its reader for what `tool` does: its verb begins it, or stands after "can you"."""
    place = next((at for at, word in enumerate(clause) if word in _VERBS[tool]), None)
    if place is None:
        return False
    before, (verb, *after) = clause[:place], clause[place:]
    if not _NOT.isdisjoint(before) or not _NOT_AFTER.isdisjoint(after) or _ASKED.intersection(after[:1]):
        return False
    to = next((word for word in after if word not in _TO), "")
    if (verb in _SAY and to in _FOR_ASKER) or (verb in _FOLLOW and _NO_FOLLOW.intersection(after[:1])):
        return False
    first, *others = [word for word in before if word not in _LEADS] or [""]
    asks_you = first in _ASKS_YOU or (first in _MODALS and others[:1] in _YOU)
    wants_you = before[-2:] == ["you", "to"] and not _WANTS.isdisjoint(before)
    return not first or asks_you or wants_you


def _has_verb_post(words: list[str]) -> bool:
    """Whether "post" stands as a verb, by the word before it."""
    before = (".", *words)
    return any(word == "post" and earlier in _BEFORE_A_VERB for earlier, word in zip(before, words, strict=False))


def _is_talk(text: str, known: frozenset[str]) -> bool:
    """Whether `text` is English talk; a question in another language may be a request."""
    return bool(known & _ENGLISH) and classify_host_intent_structural(_NAMED.sub(" ", text)).intent != "action_request"
