"""Detects messages that only close a conversation.

Wrong in one direction the SOUL thanks for thanks without end; wrong in the other it ignores somebody who spoke. So a
text counts as a closing only when it looks like one *and* little else is left of it.
"""

from __future__ import annotations

import unicodedata

import regex

from common.text.graphemes import CLUSTER
from common.text.strings import straighten

_STARTER_MAX_CHARS = 200
_SUBSTANCE_WORDS = 3
_SUBSTANCE_WORDS_BEFORE_THANKS = 2
_SUBSTANCE_WORDS_OF_ANOTHER_SENTENCE = 2
_SUBSTANCE_WORDS_BESIDE_A_FAREWELL = 6
_ENDING_MAX_CHARS = 200
_ENDING_WORDS = 3

_FENCE = "```"
# NOTE(self): a question mark at the end of a link is the writer's, one inside it is the link's.
_LINK = regex.compile(r"https?://\S*[^\s?]|(?<![\w-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}\.\p{L}{2,24}/(?:\S*[^\s?])?")
_CODE = regex.compile(r"`[^`\n]+`")
_HANDLE = regex.compile(r"@[\w.-]+")
# NOTE(self): scripts written without spaces count two signs as one word.
_LETTERS = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]{2}|[\p{L}\p{M}\p{N}]+(?:'\p{L}+)?")
_EMOJI = regex.compile(r"\p{RI}{2}|[0-9#*]\uFE0F?\u20E3|\p{Extended_Pictographic}.*", regex.DOTALL)

_LENGTHENED = regex.compile(r"(\p{L})\1{2,}")
_INTENT = regex.compile(
    r"""\b(?:
        stop(?:ping)?\ here | leaving\ it\ here | closing\ (?:on\ my|the\ loop|this) | see\ you\ (?:on|in)
      | let'?s\ keep\ the\ rest\ in | wait\ for\ the\b.{0,60}?\bPRs?
      | tag\ (?:me|us|you|him|her|them|everyone|the|@\S+)\b.{0,60}?\b(?:on|in|when)
      | don'?t\ (?:keep\ )?loop(?:ing)? | looking\ forward | can'?t\ wait
    )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
_STARTER = regex.compile(
    r"""\A\W*+(?:(?:(?:ha)++|oh|ah|a++w++|hey|ok(?:ay)?|yes|yeah|well|much|so)\W*+)?(?:
        thanks+ | thank\ you | thx | ty(?!\ \p{Lu}) | appreciated? | perfect | sounds\ (?:good|great) | great
      | awesome | wonderful | excellent | amazing | totally | deal | love\ it | all\ good | makes\ sense
      | aligned | nice | yep | agreed | absolutely | definitely | exactly | for\ sure | likewise | same\ here
      | will\ do(?!\ (?:the|a|my|your)\b) | on\ it | right\ on | looking\ forward | excited\ (?:to|about)
      | got\ it | ta(?=\W*$|[,!])
      | cheers | congrat(?:s|ulations) | you're\ (?:very\ |most\ )?welcome | no\ (?:worries|problem)
      | (?:it\ was\ )?my\ pleasure | (?:so\ |very\ )?(?:glad|happy)\ (?:it|that|to)\b | well\ said
      | (?:this|that)(?:'s|\ is|\ was)\ (?:so\ |very\ |really\ )?(?:great|true|kind|lovely|wonderful|nice|sweet)
      | take\ care | good\ night | sleep\ well | have\ a\ (?:good|great|nice|lovely|wonderful)
      | have\ fun(?!\ \w+ing\b) | (?:yes,?\ )?(?:exactly,?\ |all\ of\ )?this(?=\W*$)
      | enjoy\ (?:your|the) | brilliant | beautiful(?:ly)? | fantastic | lovely | incredible | gorgeous
      | fabulous | superb | super | sweet | (?:cool|neat)(?=\W*$|[,.!]) | bravo | kudos | yay | hooray
      | sure\ thing(?=[,.!]) | fair\ enough | indeed | noted | understood | alright | signing\ off
      | talk\ (?:soon|later|to\ you) | until\ next\ time | couldn't\ agree\ more
      | (?:i'm\ )?so\ (?:glad|happy|true|kind) | (?:same|right)\ back\ at\ you | same\ to\ you | you\ too
      | any\ ?time | spot\ on | nailed\ it | love\ (?:this|that) | (?:good|best\ of)\ luck | safe\ travels
      | catch\ you | ttyl | (?:i'm\ )?(?:so\ )?(?:grateful|honou?red|touched)
      | what\ an?\ (?:great|lovely|nice|wonderful|beautiful|kind|sweet|fun|joy|pleasure|delight)
    )(?![\w'-])(?!\ (?:is|are|was|were|has|have|try)\b)""",
    regex.VERBOSE | regex.IGNORECASE,
)
_CLAUSE_WORD = r"\ (?!(?:but|though|although|however|except|unless|yet)\b)[^\s.!,;:\u2014\u2013]+"
_APPLAUDING_FIGURES = frozenset({"100", "110", "10", "24", "1000"})
_SENTENCE_END = regex.compile(r"(?<=[.!;:,\u2014\u2013\n])\s")
_THANKS = regex.compile(
    r"""\b(?:
        thanks+ | thank\ you | thx | much\ appreciated | couldn't\ agree\ more
      | couldn't\ have\ (?:said|put)\ it\ better | (?:sending|much|all\ my)\ love
      | said\ it\ all | no\ notes | hats\ off | take\ a\ bow | made\ my\ day | pleasure\ (?:is|was)\ mine
    )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
_POLITE = regex.compile(
    rf"""(?<=(?:^|[.!,;:\u2014\u2013\n-])\W{{0,9}}(?:\p{{L}}{{1,9}}\W{{1,2}}){{0,3}})(?:
        (?:thanks+|thank\ you|thx|ty|cheers|appreciated?)\b
            (?!\ to\ (?!(?:you|everyone|all|both|each)\b|@)|\ for\ nothing)(?:{_CLAUSE_WORD}){{0,12}}
      | (?:looking\ forward|can'?t\ wait|excited\ (?:to|about))\b(?:{_CLAUSE_WORD}){{0,8}}
      | (?:(?:glad|happy)\ (?:it|that|to)|(?:there(?:'s|\ is)\ )?no\ (?:worries|problem|rush|hurry|pressure|need))\b
            (?!\ (?:has|is|was|with|in)\b)(?:{_CLAUSE_WORD}){{0,4}}
      | (?:couldn't\ agree\ more|can't\ (?:thank\ you\ enough|complain))\b
      | couldn't\ have\ (?:said|put)\ it\ better(?:\ myself)?\b | until\ (?:next\ time|then|tomorrow|soon)\b
      | (?:i\ )?stand\ corrected\b | (?:nothing\ (?:more\ )?to\ add|no\ notes|chef's\ kiss|hats\ off|take\ a\ bow)\b
    )""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""A polite phrase with what it is about, to the end of its clause."""
_FAREWELL = regex.compile(
    r"""\b(?:
        wait\ for\ the\b.{0,60}?\bPRs? | tag\ \S+(?:\ [^\s.!,;:]+){1,6} | see\ you\ (?:on|in)(?:\ \S+){1,3}
      | let'?s\ keep\ the\ rest\ in(?:\ \S+){1,4} | don'?t\ (?:keep\ )?loop(?:ing)? | can'?t\ wait
    )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
_OBJECTS = regex.compile(
    r"""\b(?:
        (?:but|though|although|however|except|unless|until|yet)\b(?=\W+\w) | wrong | false
      | incorrect | corrections? | instead
      | actually | not(?!\ at\ all) | never | nobody | none | cannot | disagree\w* | opposite | contrary | unlike | than
      | (?:declin|refus|reject|doubt|oppos|hat|fail|crash)(?:e[sd]?|ing|s)?
      | br[eo]ken? | breaks | dead | missing | typos? | errors?
      | bugs? | \w+n't | still | now\ (?:the|please) | please\ (?!do\b)
      | (?:answer|question|point|reply|idea)s?\ (?:would|could|should|might|is|are|was|were)
      | nothing | stop\ (?!here|there|for|it)\w+ | (?<!oh\ )no(?!\ (?:worries|problem|rush|hurry|pressure|need)) | only
    )\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""What takes back, limits or asks for something: words after which a text says more than thanks."""
_ENDING = regex.compile(
    r"""\b(?:
        (?:enough|all|it|done|finished|over|stop(?:\ (?:here|it))?)(?:,?\ (?:folks|everyone|all))?
            \ for\ (?:today|now|tonight|the\ day)
      | (?:that'?s|that\ is|that\ was|that'?ll\ be|that\ will\ be)\ (?:all|enough)
            (?=\W{0,9}(?:$|thank|folks|everyone|for\ me))
      | call\ it\ a\ (?:day|night) | good\ ?night | good\ ?bye | bye(?:\ for\ now)?(?=\W{0,9}(?:$|all|everyone|folks))
      | (?:gotta|(?:have|got|need)\ to|must|should)\ (?:run|go|dash|leave|sleep|be\ off)(?=\W*(?:$|[,.!;]|now\b))
      | (?:talk|later)\ (?:soon|later)(?=\W*(?:$|[,.!;]))
      | see\ you\ (?:all\ )?(?:tomorrow|later|soon|next\ \w{1,9}) | until\ tomorrow | talk\ (?:to\ you\ )?tomorrow
      | (?:let'?s|we\ can|please|ok(?:ay)?,?)\ (?:stop|leave\ it|end)\ (?:here|there|it\ here)
    )\b|\b(?:that'?s|that\ is)\ (?:all|enough)\W{0,9}$""",
    regex.VERBOSE | regex.IGNORECASE,
)
_STATES = regex.compile(
    r"""\b(?!(?:this|that|it|you|we|they|these|those|what|all|how|which|there|here|who)\b)
        \w{1,40}\ (?:is|was|are|were|will\ be)\b""",
    regex.VERBOSE | regex.IGNORECASE,
)
"""What says something of a thing that it names: more than a word to the other."""
_GOES_ON = regex.compile(r"\b(?:please|but|then|first|before|until|now|also|next)\b", regex.IGNORECASE)
_DETAIL = regex.compile(
    r"""
        ^[ \t]*(?:[-*•]|\d+[.)])[ \t]+\S                # a list
      | `[^`\n]+`                                       # quoted code
      | (?<![\w.])(?!100\ ?%)\d+(?:[.,]\d+)?\ ?         # a figure with its unit; "100 %" is only applause
        (?:%|°\ ?[CF]|[€$£]|(?:ns|µs|ms|s|sec|secs|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?
          |[kmgt]i?b|bytes?|[kmgt]?hz|[kmgt]?w|[km]?v|px|mm|cm|m|km|kg|g|mg|ml|l|fps|rpm|tokens?)\b)
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.MULTILINE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOPWORDS = _words("""
    a about all also am an and any are aren as at be been but by can could couldn did didn do does doesn doing don done
    for from get got had has hasn have haven having he her here him his how i if in into is isn it its just let ll may
    me might more most my need no nor not of on one only or other our out own shall she should shouldn so some such
    than that the their them then there these they this those to too up us very was wasn we were what when where which
    who why will with won would wouldn you your
""")
_CLOSING_VOCABULARY = _words("""
    absolutely agreed aligned amazing appreciate appreciated awesome bye cheers close closing cool deal definitely
    exactly excellent excited forward glad good great happy keep leaving likewise loop looping love loved looking makes
    much nice ok okay perfect please really rest right same see sense soon sounds stop stopping sure tag thank thanks
    thx together totally ty wait waiting wonderful yeah yep yes
""")
_SOCIAL_VOCABULARY = _words("""
    again along always anytime back believe best better bit bless blessed both breakdown brilliant bunch care chat
    chatting cheering comment community company connecting conversation couldn day days delighted done encouraging
    energy enjoy enjoyed evening ever every everybody everyone everything exchange explanation fantastic far feel
    feeling folks follow following friend friends fun generous gold gracious grateful gratitude guys ha haha happy
    heads hear heart hearts hello help helped helpful helps here hey honored honoured hope hugs idea incredible
    insight insights inspired inspiring job keen kind know later laugh learning little lot lots lovely luck made
    making mean means meantime million mine mood morning moving nailed need next night note noted one onto peace
    plan plans pleased pleasure point post posted problem proud question quick read reading ready reply rooting safe
    said say see seeing share shared sharing signing sleep smile smiling spot start started stay stellar stuff such
    superb sure sweet take talk talked talking tell theirs thing things think thought thoughtful thoughts thread
    thrilled time today tomorrow tonight touch touched travels true truly update useful vibes warm warmly way week
    weekend welcome well while whole word words work worries write yay yours
""")
"""What people say around thanks and farewells; elsewhere these words do carry something."""
_ACKNOWLEDGEMENTS = _words("""
    absolutely acknowledged agree agreed amazing appreciate appreciated awesome beautiful cheers comment cool
    definitely exactly excellent fair fascinating glad good great haha indeed insightful interesting kind lovely
    likewise love loved message nice noted perfect point put question reply said share sharing sure
    thank thanks thought
    thoughtful totally true understood well wonderful words wow
    danke dank dankeschön vielen frage gute guter genau herzlichen interessant klasse schön stimmt super toll verstanden
    accord beaucoup bonne bravo intéressant merci gracias muchas buena pregunta interesante acuerdo
    grazie mille bella domanda bedankt obrigada obrigado muito boa pergunta interessante dziękuję dzięki спасибо
    ありがとう ありがとうございます どうも 谢谢 謝謝 감사합니다 고마워요 고마워
""")
_AROUND_ACKNOWLEDGEMENTS = _words("""
    a about am an and are as asking by d do for from have how i indeed is it just m making me my of on r re really s so
    such that the this to too u ve very was we what with writing you your much many reading
    lieb liebe lieber dir beste besten infiniment fois bien gentil vraiment tout muchísimas muchisimas mil tan amable
    das die der ein eine du dir euch für ist sehr wirklich je suis c est une très pour l de la le un muy por es una
    es per è dank wel
""")
_SIGNALS = _words("""
    absolutely ace ack adios agree agreed amazing amen appreciate appreciated awesome beautiful bedankt best bless
    blessed blessings brava bravo brilliant bye care chapeau charming cheers ciao clever concur congrats congratulations
    correct cracking cute danke dankeschön definitely delighted delightful dzięki dziękuję enjoy enjoyed epic exactly
    excellent fab fabulous fantastic farewell fun genius glad godspeed good goodbye goodnight gorgeous gracias grateful
    gratitude grazie great happy helpful hilarious honored honoured hugs impressive insightful inspiring kind kudos
    legend lgtm lovely luck magnificent marvellous marvelous merci merry moving nice night noted obliged obrigada
    obrigado outstanding perfect pleasure preach precisely props relatable remarkable respect right roger safe same
    seconded sgtm sleep smashing splendid spot stellar stunning superb sweet taken terrific thank thanks thoughtful thx
    touche touching touché true ttyl ty tysm tyvm valid welcome wfm wise wonderful wow xo xoxo yay спасибо
    ありがとう 謝謝 谢谢 감사합니다 고마워요
""")
"""Words of thanks, praise, agreement or farewell. Where nothing else of substance is said, one of them is enough."""
_INTERJECTIONS = _words("""
    ah ahh anyway aw aww eh hah haha hahaha heh hehe hm hmm hooray huh lmao lol mm mmm nah oh ok okay omg oof ooh phew
    right so uh um whoa woah wow yeah yep yes yo yup
""")
_LEAVING = _words("""
    afternoon answer answers anyone baby bed big birthday bot bots buddy christmas closing completely confirmed darling
    dear deep deeply dinner done dreams easter entirely fair farewell fix folks friend full fully go going gonna gotta
    gtg guy hard head headed heading heartfelt heartily holiday holidays home honestly huge hun kindly lad lads lass
    leave literally little lunch massive mate mega merry million new now obliged off pal people quick rest robot run
    sending seriously sincerely sir sleep sometime soon strongly taken team tight till ton tons total warmed warming
    weekday wholeheartedly work works year years
""")
_WITHOUT_SUBSTANCE = (
    _SOCIAL_VOCABULARY | _SIGNALS | _INTERJECTIONS | _LEAVING | _ACKNOWLEDGEMENTS | _AROUND_ACKNOWLEDGEMENTS
)
_QUESTION_MARKS = frozenset("?\uff1f\u061f\u2e2e\u2047\u2048\u2049\u203d\u2753\u2754\u055e\u1367\u037e")


def is_low_value_closing(text: str) -> bool:
    """Whether `text` merely thanks, agrees or takes leave, so that a like answers it best. A question never does."""
    plain = straighten(text).strip()
    if asks(plain) or _FENCE in plain or _DETAIL.search(plain):
        return False
    bare = without_handles(plain)
    bare = _LENGTHENED.sub(r"\1", bare)
    takes_leave = _INTENT.search(plain) is not None or ends_talk(plain)
    starts, thanks = _STARTER.match(bare) is not None, _says_thanks(bare)
    if not takes_leave and len(plain) >= _STARTER_MAX_CHARS:
        return False
    rest = _FAREWELL.sub(" ", _POLITE.sub(" ", bare))
    if _OBJECTS.search(rest):
        return False
    said = [_substance(sentence) for sentence in _SENTENCE_END.split(rest)]
    if takes_leave:
        return sum(said) < _SUBSTANCE_WORDS_BESIDE_A_FAREWELL
    if not (starts or thanks):
        return _has_signal(bare) and _substance(bare) == 0 and not _STATES.search(bare)
    most = _SUBSTANCE_WORDS if starts else _SUBSTANCE_WORDS_BEFORE_THANKS
    return sum(said) < most and all(words < _SUBSTANCE_WORDS_OF_ANOTHER_SENTENCE for words in said[1:])


def only_acknowledges(text: str) -> bool:
    """Whether `text` says nothing but thanks, praise or agreement, or shows only signs. "Yes" and "no" are answers."""
    bare = without_handles(unicodedata.normalize("NFC", text).lower())
    if asks(bare) or _FENCE in bare:
        return False
    words = _LETTERS.findall(bare)
    if any(word not in _ACKNOWLEDGEMENTS and word not in _AROUND_ACKNOWLEDGEMENTS for word in words):
        return False
    return not words or any(word in _ACKNOWLEDGEMENTS for word in words)


def _says_thanks(text: str) -> bool:
    return _THANKS.search(text) is not None or (any(char.isalpha() for char in text) and only_acknowledges(text))


def _has_signal(text: str) -> bool:
    """Whether a word of `text` thanks, praises, agrees or says goodbye."""
    return any(word in _SIGNALS for word in _LETTERS.findall(text.lower()))


def _substance(text: str) -> int:
    """How many words of `text` carry something in a text that is polite besides."""
    said = [word for word in content_words(text) if word not in _WITHOUT_SUBSTANCE]
    return len(said) + sum(word.isdigit() and word not in _APPLAUDING_FIGURES for word in said)


def ends_talk(text: str) -> bool:
    """Whether `text` says that the talk is over for now: "thanks, that is enough for today". A question never does."""
    plain = straighten(text[:_ENDING_MAX_CHARS]).strip()
    if len(text) >= _ENDING_MAX_CHARS or asks(plain) or not _ENDING.search(plain):
        return False
    rest = _ENDING.sub(" ", plain)
    return _GOES_ON.search(rest) is None and len(content_words(rest)) < _ENDING_WORDS


def asks(text: str) -> bool:
    """Whether `text` holds a question mark of any script, links and quoted code apart."""
    return not _QUESTION_MARKS.isdisjoint(_CODE.sub(" ", _LINK.sub(" ", text)))


def is_emoji_only(text: str) -> bool:
    """Whether a reader sees only emoji and space, at least one emoji. Digits are no emoji; keycaps and flags are."""
    clusters = [cluster for cluster in CLUSTER.findall(text) if not cluster.isspace()]
    return bool(clusters) and all(_EMOJI.fullmatch(cluster) for cluster in clusters)


def content_words(text: str) -> list[str]:
    """The words that carry something, lower case and in order: no function words, handles, links or polite phrases."""
    bare = _HANDLE.sub(" ", _LINK.sub(" ", straighten(text).lower()))
    stems = (word.split("'")[0] for word in _WORD.findall(bare))
    return [stem for stem in stems if len(stem) > 1 and stem not in _STOPWORDS and stem not in _CLOSING_VOCABULARY]


def without_handles(text: str) -> str:
    """`text` without `@handles`, trimmed."""
    return _HANDLE.sub("", text).strip()
