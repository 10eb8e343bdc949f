"""Which sections the code asks of which skill, and which variables each may use. Checked once, at start."""

from __future__ import annotations

from collections.abc import Mapping

from modules.services.skills.own_contracts import OWN_CONTRACTS
from modules.services.skills.work_contracts import WORK_CONTRACTS

_NONE: frozenset[str] = frozenset()
_CONTACT: frozenset[str] = frozenset({"contact"})

SKILL_CONTRACTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    **OWN_CONTRACTS,
    **WORK_CONTRACTS,
    "core": {
        "Ground Rules": frozenset(),
        "Untrusted Text": frozenset({"kind", "author", "uri", "boundary", "text"}),
        "Probe": frozenset(),
        "Nudge": frozenset(),
    },
    "grounding": {
        "System Prompt": frozenset(),
        "User Message": frozenset(),
    },
    "owner-communication": {
        "System Prompt": frozenset({"bluesky_username", "owner_handle"}),
        "How Things Stand": frozenset({"situation"}),
    },
    "bluesky-response": {
        "System Prompt": frozenset({"bluesky_username", "owner_handle"}),
        "User Message Template": frozenset(
            {
                "today",
                "reason",
                "author",
                "relationship",
                "conversation",
                "post",
                "picture",
                "notes",
                "ritual",
            }
        ),
        "Relationship": frozenset({"interactions", "sentiment"}),
        "Notes": frozenset({"depth", "own_replies", "peers", "peer_posts", "github_username", "answered"}),
        "No Conversation": frozenset(),
    },
    "direct-messages": {
        "System Prompt": frozenset({"bluesky_username", "owner_handle"}),
        "User Message Template": frozenset({"today", "author", "relationship", "note", "conversation", "message"}),
        "Relationship / New": _NONE,
        "Relationship / Known": frozenset({"interactions"}),
        "Note / Automated": _NONE,
        "No Conversation": _NONE,
    },
    "message-tools": {
        "Descriptions / message_answer": _NONE,
        "Descriptions / message_silence": _NONE,
        "Answers / Empty": _NONE,
        "Answers / Too Long": frozenset({"length", "most"}),
        "Answers / Instructions": _NONE,
        "Answers / Repeats": _NONE,
        "Answers / Unfinished": _NONE,
        "Answers / Person": _NONE,
        "Answers / Blocked": frozenset({"reason"}),
        "Answers / Given Up": _NONE,
        "Answers / Held": _NONE,
        "Answers / Sent": _NONE,
        "Answers / Silent": _NONE,
    },
    "mcp-tools": {
        "Instructions": frozenset({"name"}),
        **{
            f"Descriptions / {tool}": _NONE
            for tool in ("status", "today", "why", "memory_search", "drafts", "draft", "approve", "reject")
        },
    },
    "bluesky-tools": {
        **{
            f"Descriptions / {tool}": _NONE
            for tool in (
                "bluesky_post",
                "bluesky_reply",
                "bluesky_like",
                "bluesky_repost",
                "bluesky_post_picture",
                "bluesky_reply_picture",
                "graceful_exit",
                "stay_silent",
                "bluesky_follow",
                "bluesky_unfollow",
                "mute_account",
                "bluesky_delete_post",
                "bluesky_limit_replies",
                "bluesky_unschedule_post",
                "bluesky_get_timeline",
                "bluesky_get_notifications",
                "bluesky_get_profile",
                "bluesky_get_followers",
                "bluesky_get_follows",
            )
        },
        "Done / bluesky_follow": frozenset({"did", "when"}),
        "Done / bluesky_unfollow": frozenset({"did", "when"}),
        "Done / bluesky_post": frozenset({"text", "who", "at", "when"}),
        "Done / bluesky_unschedule_post": frozenset({"at"}),
        "Done / bluesky_repost": frozenset({"when"}),
        "Done / bluesky_limit_replies": frozenset({"who", "when"}),
        "Done / bluesky_delete_post": frozenset({"when"}),
        "Done / mute_account": frozenset({"did"}),
        "Answers / Leaves Soon": _NONE,
        "Answers / Leaves Later": frozenset({"span"}),
        "Answers / Post Not Sent": _NONE,
        "Answers / Own Handle": frozenset({"handle"}),
        "Answers / Reply Not Sent": frozenset({"problem"}),
        "Answers / person": _NONE,
        "Answers / instructions": _NONE,
        "Answers / repeats": _NONE,
        "Answers / repeats them": _NONE,
        "Answers / unfinished": _NONE,
        "Answers / done": _NONE,
        "Answers / thanks": _NONE,
        "Answers / peers": _NONE,
        "Answers / Account Missing": frozenset({"github_username"}),
        "Answers / Peers Meanwhile": frozenset({"peers"}),
        "Answers / No Reply": _NONE,
        "Answers / Liked Instead": frozenset({"reason"}),
        "Answers / No Closing Message": _NONE,
        "Answers / Left": _NONE,
        "Answers / Silent": _NONE,
        "Answers / Not Followed": _NONE,
        "Answers / Post Itself": _NONE,
        "Answers / Done Before": _NONE,
        "Answers / Others First": _NONE,
        "Answers / Muted": _NONE,
        "Answers / Told Already": _NONE,
        "Answers / Not Named": _NONE,
        "Answers / No Post": _NONE,
        "Answers / Not Your Post": _NONE,
        "Answers / Not First Post": _NONE,
        "Answers / Unclear Audience": _NONE,
        "Answers / Scheduled": frozenset({"when"}),
        "Answers / Scheduled Held": frozenset({"when"}),
        "Answers / Unscheduled": frozenset({"when"}),
        "Answers / Unclear Moment": _NONE,
        "Answers / Unclear Scheduled": frozenset({"moments"}),
        "Answers / None Waits": _NONE,
        "Answers / Not In Thread": _NONE,
        "Answers / Post Unnamed": _NONE,
        "Answers / By Did": _NONE,
        "Answers / Blocked": frozenset({"reason"}),
        "Answers / Held": _NONE,
        "Answers / Empty Text": _NONE,
        "Answers / Too Long": frozenset({"length", "most"}),
        "Answers / Too Long But This": frozenset({"length", "most", "fitting"}),
        "Answers / Too Many Bytes": frozenset({"size", "most"}),
        "Answers / Answered Already": _NONE,
        "Answers / Not Your Record": _NONE,
        "Answers / No Picture": _NONE,
        "Answers / Only The Source": _NONE,
        "Answers / Said Before": _NONE,
    },
    "picture-tools": {
        **{
            f"Descriptions / {tool}": _NONE
            for tool in (
                "arena_search",
                "arena_fetch_channel",
                "arena_post_image",
                "web_browse_images",
                "web_fetch",
                "curl_fetch",
                "bluesky_post_with_image",
                "lookup_post_context",
                "get_posts_needing_attribution",
                "format_source_attribution",
                "mark_attribution_followup",
                "update_post_attribution",
            )
        },
        "Answers / No Channel": _NONE,
        "Answers / Nothing Left": _NONE,
        "Answers / No Alt Text": _NONE,
        "Answers / No Such Picture": _NONE,
        "Answers / Too Long": frozenset({"length", "most"}),
        "Answers / Shown Before": _NONE,
        "Answers / Unusable": frozenset({"problem"}),
        "Answers / Not Logged": _NONE,
        "Answers / No JSON": _NONE,
        "Answers / Noted": _NONE,
    },
    "tool-calls": {
        "Answers / Not Available": frozenset({"tool", "names"}),
        "Answers / Unknown": frozenset({"tool", "names"}),
        "Answers / Secret": frozenset({"problem"}),
        "Answers / Malformed": frozenset({"tool", "problem"}),
        "Answers / Wrong Fields": frozenset({"tool", "problem", "takes"}),
        "Answers / Withheld Fields": frozenset({"tool", "fields", "takes"}),
        "Answers / Too Slow": frozenset({"tool", "seconds"}),
        "Answers / Refused": frozenset({"tool", "problem"}),
        "Answers / Failed": frozenset({"tool", "problem"}),
        "Answers / Replied Already": _NONE,
    },
    "bluesky-pictures": {
        "Picture": frozenset({"description"}),
        "Not Loaded": frozenset({"description"}),
    },
    "shared-picture": {
        "For a Post": frozenset({"picture"}),
        "For a Reply": frozenset({"picture"}),
    },
    "expression": {
        "System Prompt": frozenset({"bluesky_username", "richness_note", "tool"}),
        "User Message Template": frozenset(
            {"today", "tone", "source", "prompt", "recent_posts", "answered", "picture", "tool"}
        ),
        **{f"Tones / {tone}": _NONE for tone in ("curious", "supportive", "reflective", "celebratory")},
        **{
            f"What Was Answered / {pattern}": frozenset({"source"})
            for pattern in ("Answered", "Unanswered", "Two Lines")
        },
        "Richness Note": frozenset({"parts"}),
        "Revision": frozenset({"draft", "problem", "tool", "choice_example", "bounded_example"}),
        "Advice / Wide Question": _NONE,
        "Advice / Half Artifact": _NONE,
        "Advice / No Question": _NONE,
        "Advice / Nothing": _NONE,
        "No Posts": _NONE,
    },
    "expression-prompts": {
        "Invitation Suffix": frozenset(),
        "Fallback Prompts": frozenset(),
        "Invitation Prompts": frozenset(),
        "Prompt Templates": frozenset({"value", "value1", "value2", "designName", "designUrl"}),
    },
    "memory": {
        "Recalled": frozenset({"entries"}),
        "Entry": frozenset({"id", "kind", "subject", "body", "tags", "when", "importance"}),
        "Foreign Entry": frozenset({"id", "kind", "when", "importance", "frame"}),
        "Day Entry": frozenset({"id", "kind", "subject", "body", "tags"}),
        "Foreign Day Entry": frozenset({"id", "kind", "frame"}),
        "Left Out": frozenset({"count"}),
        "Profile": frozenset({"agent", "user"}),
    },
    "workspace": {
        "Headings": frozenset(),
        "Identity": frozenset({"name", "emoji"}),
        "Tools": frozenset({"tools"}),
        "Skill Line": frozenset({"name", "description", "when"}),
        "Cut": frozenset({"count"}),
        "Runtime": frozenset({"today", "timezone", "host", "version", "mode", "model"}),
    },
    "memory-extraction": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset({"date", "transcript"}),
        "Summary Message": frozenset({"summary"}),
        "Tool": _NONE,
    },
    "prosoche": {
        "Attention": frozenset({"what", "when", "why", "count", "place"}),
        "Degraded": frozenset({"service", "since", "avoid"}),
        "Avoid": frozenset(),
        "Insights": frozenset({"about"}),
    },
    "peer-awareness": {
        "System Prompt": frozenset({"bluesky_username"}),
        "Introduction": frozenset({"github_username"}),
        "Introduction Tool": _NONE,
        "Announcement": frozenset({"handle"}),
        "Announcement Tool": _NONE,
        "GitHub Peer Awareness": frozenset({"peer_list", "is_peer_plural", "peer_plural_suffix"}),
        "Relationship": frozenset({"handle", "told", "value"}),
    },
    "commissioning": {
        "System Prompt": frozenset({"owner_handle"}),
        "Opening": frozenset(),
    },
    "space-participation": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset(
            {"today", "agent_name", "present", "typing", "context", "conversation", "notes"}
        ),
        "Notes": frozenset({"names", "links"}),
        "Repository": frozenset({"repo"}),
        "Request": frozenset({"request", "seconds", "cycles"}),
        "Ownership": frozenset({"owner"}),
        "Role": frozenset({"owner"}),
        "Saturation": frozenset({"agents", "own"}),
        "Context": frozenset({"items"}),
        "Peer": frozenset({"name", "voice", "interests", "learning", "essence", "reflection", "relationship"}),
        "Progress": frozenset({"workspace", "plan", "done", "total", "active", "blocked"}),
        "Relationship": frozenset({"value"}),
        "Config": frozenset(
            {
                "cooldown_min_ms",
                "cooldown_max_ms",
                "reply_delay_min_ms",
                "reply_delay_max_ms",
                "reflection_every_n",
                "behavior_notes",
                "last_adjusted_at",
                "last_adjusted_reason",
            }
        ),
    },
    "space-action": {
        "System Prompt": frozenset({"agent_name"}),
        "User Message Template": frozenset({"request", "repo", "problem"}),
    },
    "space-judgement": {
        "Judge System Prompt": frozenset(),
        "Judge Message": frozenset({"said", "candidate"}),
        "Confirm System Prompt": frozenset(),
        "Confirm Message": frozenset({"first", "second"}),
        "Confirm Examples": frozenset(),
        "Same Claim System Prompt": frozenset(),
        "Same Claim Message": frozenset({"first", "second"}),
        "Same Claim Examples": frozenset(),
        "Intent System Prompt": frozenset(),
        "Intent Message": frozenset({"content"}),
        "First Look System Prompt": frozenset(),
        "First Look Message": frozenset({"said"}),
        "First Look Examples": frozenset(),
    },
    "rights-request": {
        "System Prompt": _NONE,
        "Message": frozenset({"post"}),
        "Examples": _NONE,
    },
    "rights-answer": {
        "System Prompt": frozenset({"bluesky_username"}),
        "Tool": _NONE,
        **{
            f"Facts / {fact}": frozenset({"count"})
            for fact in (
                "received posts",
                "acts",
                "conversations",
                "memories",
                "rights",
                "journal",
                "store",
                "files",
            )
        },
        **{f"Facts / {fact}": _NONE for fact in ("asked", "mention", "reply", "quote", "message", "no reply")},
        "Facts / weighed": frozenset({"reason"}),
        **{f"Facts / owner {kind}": frozenset({"command"}) for kind in ("know", "forget", "why")},
        "Ask / owner": frozenset({"facts", "language", "command"}),
        **{
            f"{section} / {kind}": frozenset({"facts", "language", "contact"})
            for section in ("Ask", "Plain")
            for kind in ("know", "forget", "no_reply", "reply_again", "why")
        },
    },
    "voice-phrases": {"System Prompt": _NONE, "Message": frozenset({"voice", "phrases"}), "Profile Line": _CONTACT},
}
