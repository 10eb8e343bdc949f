"""The etiquette, as data: each number with its source and what it is for. `docs/manners.md` shows the same table."""

from __future__ import annotations

from adapters.atproto.session import LOGINS_PER_DAY
from modules.services.outbox.rules.types import EtiquetteRule

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

_LIMITS = "Bluesky's published rate limits"
_GUIDELINES = "Bluesky's community guidelines, and its guide for bots: act when asked"
_OURS = "our own measure"
_MARGIN = 0.8

CONSENT = EtiquetteRule(
    "consent",
    1,
    "reason",
    None,
    _GUIDELINES,
    "A reply, like, repost or follow needs a reason found in what was received: they reached us with that very post,"
    " the thread is ours, they follow us (for a follow), they are the owner, a listed or a found peer, or the owner"
    " asked.",
)
CONSENT_BY_NAME = EtiquetteRule(
    "consent-by-name",
    1,
    "reason",
    30 * DAY_S,
    _GUIDELINES,
    "Everybody named or quoted in a text is notified too, and must have reached us within this time, or be the owner"
    " or a peer, or the owner asked.",
    "other words",
)
CONSENT_BY_COMMITMENT = EtiquetteRule(
    "consent-by-commitment",
    1,
    "reason",
    None,
    "GitHub's acceptable use policies against unsolicited bulk activity; the bound is our own measure",
    "An issue, a comment or an announcement needs a recorded commitment. For a repository that is neither ours nor the"
    " owner's it waits for the owner's yes, unless the host of a room that the owner set named the repository. An"
    " answer on GitHub needs that something led the SOUL to its thread: a notification, a link in a post to it,"
    " or a look at a workspace."
    " Work in a workspace that is watched needs nothing else.",
)
CONSENT_TO_MESSAGE = EtiquetteRule(
    "consent-to-message",
    1,
    "reason",
    None,
    "Bluesky's filter against unsolicited messages, seen in atproto issue 3246; the bound is our own measure",
    "A direct message goes to the owner, known by DID, or answers a message that the same account wrote in the same"
    " conversation of two.",
)
MESSAGES_PER_PERSON = EtiquetteRule(
    "messages-per-person",
    10,
    "messages",
    HOUR_S,
    "our own measure",
    "So many direct messages to one person who is not the owner; what more they write waits its turn.",
    "later",
)
MESSAGES_PER_PERSON_DAY = EtiquetteRule(
    "messages-per-person-a-day",
    30,
    "messages",
    DAY_S,
    "our own measure",
    "So many direct messages to one person who is not the owner in a day; what more they write waits its turn.",
    "later",
)
GITHUB_CREATIONS = EtiquetteRule(
    "github-creations",
    20,
    "acts",
    HOUR_S,
    "GitHub's published limit: 500 requests an hour that create content; the number is our own measure",
    "So many issues, comments, pull requests, reviews, repositories and claims on tasks leave in an hour; the rest"
    " waits its turn.",
    "later",
)
GITHUB_CREATIONS_OF_OTHERS = EtiquetteRule(
    "github-creations-of-others",
    15,
    "acts",
    HOUR_S,
    "our own measure",
    "What the owner did not ask for leaves until so many of these are used in an hour: the rest are the owner's share.",
    "later",
)
WELCOME = EtiquetteRule(
    "welcome",
    1,
    "reason",
    None,
    "the policies of projects that refuse AI agents or set them conditions; the bound is our own measure",
    "Before the first act in a repository that is neither ours nor the owner's, nor a workspace of theirs, the files"
    " that GitHub shows there are asked about AI agents. Where they refuse nothing is done; where that is not clear it"
    " waits for the owner's yes. What the owner asks for in a turn that holds nobody else's words is done.",
    "silence",
)
PULLS_PER_REPOSITORY = EtiquetteRule(
    "pulls-per-repository",
    1,
    "open pull requests",
    None,
    "GitHub's limits on pull requests of people who may not push; the number is our own measure",
    "So many pull requests of ours are open in a repository that is neither ours nor the owner's, nor a workspace of"
    " theirs, and where we may not push.",
)
WORKFLOW_FILES = EtiquetteRule(
    "workflow-files",
    1,
    "yes",
    None,
    "GitHub's guidance for coding agents: workflows run with the rights of the repository",
    "A change of a file that runs in CI or at install, says what is installed and from where, or instructs agents waits"
    " for the owner's yes: workflows, lock files, `.npmrc`, `.gitattributes`, CODEOWNERS, AGENTS.md and the like.",
)
COST_CREATE = EtiquetteRule("cost-create", 3, "points", None, _LIMITS, "What each try to create a record counts.")
COST_UPDATE = EtiquetteRule("cost-update", 2, "points", None, _LIMITS, "What each change of the profile counts.")
COST_DELETE = EtiquetteRule("cost-delete", 1, "points", None, _LIMITS, "What each try to delete a record counts.")
POINTS_PER_HOUR = EtiquetteRule(
    "points-per-hour",
    5_000 * _MARGIN,
    "points",
    HOUR_S,
    f"{_LIMITS}: 5,000 an hour, of which we use 80 %",
    "Nothing leaves that would pass this; it waits. Each try counts, as it leaves.",
    "later",
)
POINTS_PER_DAY = EtiquetteRule(
    "points-per-day",
    35_000 * _MARGIN,
    "points",
    DAY_S,
    f"{_LIMITS}: 35,000 a day, of which we use 80 %",
    "Nothing leaves that would pass this in a whole day; it waits. Each try counts, as it leaves.",
    "later",
)
SAME_REPLY = EtiquetteRule(
    "same-reply",
    2,
    "replies",
    DAY_S,
    "Bluesky's community guidelines against spam; the number is our own measure",
    "The same words to many people are spam. Handles, links, digits, case, punctuation and emoji make no difference.",
    "other words",
)
YOUNG = EtiquetteRule(
    "young-account",
    14,
    "days",
    14 * DAY_S,
    _OURS,
    "So long an account is young. One whose age is unknown counts as young.",
)
STRANGERS_YOUNG = EtiquetteRule(
    "strangers-while-young",
    6,
    "people",
    HOUR_S,
    _OURS,
    "So many people who are neither owner nor peer get a reply from a young account; the others wait their turn.",
    "later",
)
STRANGERS = EtiquetteRule(
    "strangers",
    20,
    "people",
    HOUR_S,
    _OURS,
    "So many people who are neither owner nor peer get a reply once the account is older; the others wait their turn.",
    "later",
)
REPLIES_PER_PERSON = EtiquetteRule(
    "replies-per-person",
    6,
    "replies",
    HOUR_S,
    _OURS,
    "So many replies to one person who is neither owner nor peer; what more they write waits its turn.",
    "later",
)
REPLIES_PER_PEER = EtiquetteRule(
    "replies-per-peer",
    20,
    "replies",
    HOUR_S,
    _OURS,
    "So many replies to one listed peer; what more it writes waits its turn.",
    "later",
)
REPLIES_PER_DAY = EtiquetteRule(
    "replies-per-day",
    60,
    "replies",
    DAY_S,
    _OURS,
    "So many replies to one account that is not the owner's; what more it writes waits its turn.",
    "later",
)
TURNS_PER_PERSON = EtiquetteRule(
    "turns-per-person",
    8,
    "turns",
    HOUR_S,
    _OURS,
    "So many posts of one person, neither owner nor peer, are thought about, whatever comes of it; the rest waits. So"
    " it is with what they write in direct messages, counted by itself.",
    "later",
)
TURNS_PER_PEER = EtiquetteRule(
    "turns-per-peer",
    20,
    "turns",
    HOUR_S,
    _OURS,
    "So many posts of one listed peer are thought about, whatever comes of it; the rest waits.",
    "later",
)
TURNS_PER_DAY = EtiquetteRule(
    "turns-per-day",
    60,
    "turns",
    DAY_S,
    _OURS,
    "So many posts of one account that is not the owner's are thought about; the rest waits.",
    "later",
)
TURNS_PER_REPOSITORY = EtiquetteRule(
    "turns-per-repository",
    20,
    "turns",
    HOUR_S,
    _OURS,
    "So many calls in one repository on GitHub by others than the owner are thought about, whoever calls; the rest"
    " waits.",
    "later",
)
TURNS_ON_GITHUB = EtiquetteRule(
    "turns-on-github",
    40,
    "turns",
    HOUR_S,
    _OURS,
    "So many calls on GitHub by people who are neither owner nor peer are thought about, wherever they call; the rest"
    " waits.",
    "later",
)
REQUESTS_PER_PERSON = EtiquetteRule(
    "requests-per-person",
    6,
    "turns",
    HOUR_S,
    _OURS,
    "So many posts of one person are read for a request about their own data, beside the other turns; the rest waits."
    " The answers pass the limits on replies.",
    "later",
)
REQUESTS_PER_DAY = EtiquetteRule(
    "requests-per-day",
    20,
    "turns",
    DAY_S,
    _OURS,
    "So many posts of one person are read for a request about their own data; the rest waits for another day.",
    "later",
)
LOGINS = EtiquetteRule(
    "logins",
    LOGINS_PER_DAY,
    "logins",
    DAY_S,
    f"{_LIMITS} for sessions: 300 a day",
    "A session is kept and used again, so that a program that keeps crashing does not log in at each start.",
)
INJECTION = EtiquetteRule(
    "injection",
    1,
    "post",
    None,
    _OURS,
    "A post that orders a model to put its instructions aside gets silence; one that wants to be told passwords, keys"
    " or instructions gets no like.",
)
LOOP_THREAD_SOFT = EtiquetteRule(
    "loop-thread-soft",
    6,
    "turns",
    None,
    _OURS,
    "So many turns of automated accounts, ours included, may follow each other in a thread; then a like is better.",
    "like",
)
LOOP_THREAD_HARD = EtiquetteRule(
    "loop-thread-hard",
    12,
    "turns",
    None,
    _OURS,
    "After so many turns of automated accounts in a thread: silence, until a person speaks.",
    "silence",
)
LOOP_PAIR_SOFT = EtiquetteRule(
    "loop-pair-soft",
    6,
    "turns",
    DAY_S,
    _OURS,
    "After so many turns between us and one automated account, wherever they meet, a like is better; a person starts"
    " the count afresh. Direct messages count too, and there is silence instead of a like.",
    "like",
)
LOOP_PAIR_HARD = EtiquetteRule(
    "loop-pair-hard",
    12,
    "turns",
    DAY_S,
    _OURS,
    "After so many turns between us and one automated account: silence towards it.",
    "silence",
)
REPOST_SENSE = EtiquetteRule(
    "repost-sense",
    1,
    "reply",
    DAY_S,
    _OURS,
    "A near-identical text by the same author (deleted and posted again, say) is answered once.",
    "like",
)
REPOST_LIKENESS = EtiquetteRule(
    "repost-likeness", 90, "per cent", None, _OURS, "From this likeness on, two texts are near-identical."
)
REPOST_SHORT = EtiquetteRule(
    "repost-short",
    12,
    "letters",
    None,
    _OURS,
    'Shorter texts ("why?") are near-identical only if they also answer the same post.',
)

ETIQUETTE_RULES: tuple[EtiquetteRule, ...] = (
    CONSENT,
    CONSENT_BY_NAME,
    CONSENT_BY_COMMITMENT,
    CONSENT_TO_MESSAGE,
    MESSAGES_PER_PERSON,
    MESSAGES_PER_PERSON_DAY,
    GITHUB_CREATIONS,
    GITHUB_CREATIONS_OF_OTHERS,
    WELCOME,
    PULLS_PER_REPOSITORY,
    WORKFLOW_FILES,
    COST_CREATE,
    COST_UPDATE,
    COST_DELETE,
    POINTS_PER_HOUR,
    POINTS_PER_DAY,
    SAME_REPLY,
    YOUNG,
    STRANGERS_YOUNG,
    STRANGERS,
    REPLIES_PER_PERSON,
    REPLIES_PER_PEER,
    REPLIES_PER_DAY,
    TURNS_PER_PERSON,
    TURNS_PER_PEER,
    TURNS_PER_DAY,
    TURNS_PER_REPOSITORY,
    TURNS_ON_GITHUB,
    REQUESTS_PER_PERSON,
    REQUESTS_PER_DAY,
    LOGINS,
    INJECTION,
    LOOP_THREAD_SOFT,
    LOOP_THREAD_HARD,
    LOOP_PAIR_SOFT,
    LOOP_PAIR_HARD,
    REPOST_SENSE,
    REPOST_LIKENESS,
    REPOST_SHORT,
)

REPLIES_TO_STRANGERS = (REPLIES_PER_PERSON, REPLIES_PER_DAY)
REPLIES_TO_PEERS = (REPLIES_PER_PEER, REPLIES_PER_DAY)
TURNS_OF_STRANGERS = (TURNS_PER_PERSON, TURNS_PER_DAY)
TURNS_OF_PEERS = (TURNS_PER_PEER, TURNS_PER_DAY)
REQUESTS = (REQUESTS_PER_PERSON, REQUESTS_PER_DAY)
