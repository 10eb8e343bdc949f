"""Detects messages that only close a conversation, and finds the content words of a message.

A text counts as a closing only if nothing is left beside thanks, praise, agreement or a farewell. Anything less clear
is left to a model, which can like it. Loops are ended by limits, not by these words.
"""

import regex

from common.text.graphemes import CLUSTER
from common.text.hidden import visible_text
from common.text.patterns import lazy_regex
from common.text.strings import straighten

_MOST_CHARS = 200

_LINK = lazy_regex(r"https?://\S*[^\s?]|(?<![\w-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}\.\p{L}{2,24}/(?:\S*[^\s?])?")
_CODE = lazy_regex(r"`[^`\n]+`")
_HANDLE = lazy_regex(r"@[A-Za-z0-9_.-]+")
_WORD_SIGN = lazy_regex(r"[\p{L}\p{N}]")
# NOTE(self): in scripts written without spaces, two characters count as one word.
_WORD = lazy_regex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]{2}|[\p{L}\p{M}\p{N}]+(?:'\p{L}+)?")
_EMOJI = lazy_regex(r"\p{RI}{2}|[0-9#*]\uFE0F?\u20E3|\p{Extended_Pictographic}.*", regex.DOTALL)
_ASKS = lazy_regex(
    r"[?\uff1f\u061f\u2e2e\u2047\u2048\u2049\u203d\u2753\u2754\u055e\u1367\u037e]|\p{Greek};"
    r"|\p{Hiragana}\u304b(?=[\u3002\u2026\s]|\Z)"
)
"""A question as its script marks one; Japanese asks with a last か."""

_THANKS = r"""
    appreciate\ your\ (?:message|answer|reply|question|time|help|words) |
    thanks+ | thank\ you | thx | ty | tysm | (?:much\ )?(?:appreciated?|obliged) | cheers
  | danke(?:\ (?:schön|dir|euch))? | vielen\ dank | merci(?:\ beaucoup)? | (?:muchas\ )?gracias | grazie(?:\ mille)?
  | (?:muito\ )?obrigad[oa] | bedankt | dank\ je | dziękuję | dzięki | спасибо
  | ありがとう(?:ございます)? | 谢谢 | 謝謝 | 감사합니다 | 고마워요?
"""
_ABOUT = r"""
    \ (?:for|to)\ (?:(?:the|your)\ (?:answer|reply|help|explanation)|that|this|it|everything|sharing|asking|answering
    |explaining|reading|letting\ me\ know|you|everyone|everybody|all|both)
"""
_PRAISE = r"""
    (?:great|nice|perfect|awesome|wonderful|excellent|amazing|lovely|brilliant|fantastic|beautiful(?:ly)?|interesting
    |thoughtful|fascinating|cool|good|fair)\ (?:point|question|answer|reply|message|one|work|job|stuff|idea|put)
  | great | nice | perfect | awesome | wonderful | excellent | amazing | lovely | brilliant | fantastic | interesting
  | beautiful | cool | sounds\ (?:good|great) | makes\ sense | all\ good | love\ (?:it|this|that)
  | well\ said | spot\ on
  | (?:that|it)\ means\ (?:a\ lot|so\ much) | glad\ (?:we\ talked|it\ helps|it\ helped|you\ liked\ it)
  | congrat(?:s|ulations) | bravo
"""
_AGREEMENT = r"""
    agreed? | exactly | absolutely | definitely | totally | indeed | likewise | (?:so|very)\ true | same\ here
  | for\ sure | aligned | deal | right\ on | yep | got\ it | noted | understood | will\ do | on\ it
  | you're\ (?:very\ )?welcome | no\ (?:problem|worries) | my\ pleasure | couldn't\ agree\ more | excited\ (?:to|about)
"""
_FAREWELL = r"""
    good\ ?(?:night|bye) | bye(?:\ for\ now)? | see\ you(?:\ (?:all|both))?\ (?:later|soon|around|there|then|tomorrow)
  | see\ you\ (?:on|in)\ (?:the\ )?\p{L}+ | talk\ (?:to\ you\ )?(?:later|soon|tomorrow) | take\ care | good\ luck
  | until\ (?:then|tomorrow|next\ time)
  | have\ a\ (?:good|great|nice|lovely|wonderful)\ (?:day|night|evening|week|weekend)
  | (?:let's\ )?(?:call\ it\ a\ (?:day|night)|leav(?:e|ing)\ it\ (?:here|there))
  | stop(?:ping)?\ here | closing\ (?:on\ my\ (?:side|end)|the\ loop|this)
  | let'?s\ keep\ the\ rest\ in\ (?:the\ )?\p{L}+
  | tag\ (?:me\ |us\ )?(?:on|in|when)(?:\ \p{L}+){1,3} | wait\ for\ the\ (?:\p{L}+\ )?PRs?
  | looking\ forward(?:\ to\ (?:it|more))? | can'?t\ wait | (?:do\ not|don'?t)\ (?:keep\ )?loop(?:ing)?
  | (?:that's|that\ is)\ (?:all|enough) | enough\ for\ (?:today|now)
  | (?:gotta|(?:have|got|need)\ to|must|should)\ (?:run|go)
"""
_POLITE = lazy_regex(
    rf"(?<![\p{{L}}\p{{M}}\p{{N}}'-])(?:(?P<thanks>{_THANKS})(?:\ (?:so|very)\ much|\ a\ lot)?(?:{_ABOUT})?"
    rf"|{_PRAISE}|{_AGREEMENT}|(?P<farewell>{_FAREWELL})"
    r"(?:\ for\ (?:today|tonight|now|the\ day|me))?)(?![\p{L}\p{M}\p{N}'-])",
    regex.VERBOSE | regex.IGNORECASE,
)
_AROUND_WORDS = """
    a again ah all and anyway aw both end everybody everyone folks friend friends haha here hey i i'll i'm is it it's
    just let's lot many much my now of oh ok okay on please really so such that that's the then this to today tonight
    too truly very was we well what will wow you your
"""
_AROUND = frozenset(_AROUND_WORDS.split())
"""Words that may surround such phrases; any other word has content."""
_FUNCTION_WORDS = """
    about also am an any are aren as at be been but by can could couldn did didn do does doesn doing don done for from
    get got had has hasn have haven having he her him his how if in into isn keep let ll may me might more most need no
    nor not one only or other our out own see shall she should shouldn some than them there these they those up us wasn
    were when where which who why with won would wouldn
"""
_STOPWORDS = frozenset(_FUNCTION_WORDS.split()) | _AROUND


def is_low_value_closing(text: str) -> bool:
    """Return whether `text` only thanks, praises, agrees or says goodbye, so that a like answers it best."""
    return _polite(text) is not None


def only_acknowledges(text: str) -> bool:
    """Return whether `text` is only such a closing, or has no letters or digits. A question never is."""
    return is_low_value_closing(text) or not (asks(text) or _WORD_SIGN.search(without_handles(text)))


def ends_talk(text: str) -> bool:
    """Return whether `text` only says that the conversation is over for now: "thanks, that is enough for today"."""
    return any(phrase["farewell"] for phrase in _polite(text) or ())


def only_thanks(text: str) -> bool:
    """Return whether `text` only thanks, which answers no question; agreement, praise or a sign may."""
    phrases = _polite(text)
    return phrases is not None and all(phrase["thanks"] for phrase in phrases)


def asks(text: str) -> bool:
    """Return whether `text` has a question, as its script marks one, outside of links and quoted code."""
    return count_questions(text) > 0


def count_questions(text: str) -> int:
    """Return the number of questions in `text`, as its script marks them, outside of links and quoted code."""
    return len(_ASKS.findall(_CODE.sub(" ", _LINK.sub(" ", text))))


def is_emoji_only(text: str) -> bool:
    """Return whether `text` shows only emoji and space, at least one emoji. Keycaps and flags are emoji, digits not."""
    clusters = [cluster for cluster in CLUSTER.findall(text) if not cluster.isspace()]
    return bool(clusters) and all(_EMOJI.fullmatch(cluster) for cluster in clusters)


def without_emoji(text: str) -> str:
    """Return `text` with a space for each whole emoji, and without other invisible characters."""
    clusters = (" " if _EMOJI.fullmatch(cluster) else cluster for cluster in CLUSTER.findall(text))
    return visible_text("".join(clusters))


def content_words(text: str) -> list[str]:
    """Return the content words, lower case and in order: no function words, handles, links or polite phrases."""
    bare = _POLITE.sub(" ", _HANDLE.sub(" ", _LINK.sub(" ", straighten(without_emoji(text)).lower())))
    stems = (word.split("'")[0] for word in _WORD.findall(bare))
    return [stem for stem in stems if len(stem) > 1 and stem not in _STOPWORDS]


def without_handles(text: str) -> str:
    """Return `text` without `@handles`, trimmed."""
    return _HANDLE.sub("", text).strip()


def _polite(text: str) -> list[regex.Match[str]] | None:
    """Return the phrases of a text of polite phrases only; None if it has other content, or no polite phrase."""
    bare = " ".join(without_handles(straighten(without_emoji(text))).split())
    if len(bare) > _MOST_CHARS or asks(text):
        return None
    phrases = list(_POLITE.finditer(bare))
    left = regex.findall(r"[\p{L}\p{M}\p{N}']+", _POLITE.sub(" ", bare).lower())
    return phrases if phrases and _AROUND.issuperset(left) else None
