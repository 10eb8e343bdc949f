"""Which sections the code asks of the skills for work (commitments, plans, GitHub), and their variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

DocumentProblem = Literal[
    "Empty",
    "Too Long",
    "Cut Off",
    "No Headings",
    "Open Code",
    "Markup",
    "Repeats",
    "Gap",
    "Link",
    "Instructions",
    "Goal",
    "Unchanged",
    "Secret",
]
"""What may be wrong with a document that a model wrote: a subsection of `Problems` in the skill `task-document`."""

OpeningProblem = Literal["Empty", "Too Long", "Unnamed", "Others Named", "Uninvited", "No Question", "Said Before"]
"""What may be wrong with the opening post of a ritual: a subsection of `Problems` in the skill `ritual-initiation`."""
MemoProblem = Literal["Empty", "No Title", "Repeats"]
"""What may be wrong with the memo of a ritual: a subsection of `Problems` in the skill `ritual-memo`."""

_NONE: frozenset[str] = frozenset()
_PLAN_PAGES = [
    f"{page} {kind} / {part}"
    for page in ("Agents", "Scenarios")
    for kind in ("Page", "Update")
    for part in ("Title", "Estimate", "Description")
]
_WORKSPACE_TOOLS = (
    "workspace_create",
    "workspace_find",
    "create_memo",
    "plan_create",
    "plan_claim_task",
    "workspace_finish",
)
_TEST_STATES = ("Passed", "Failed", "Failing Before", "Unrun", "None")
_CODING_TOOLS = (
    *("list_files", "read_file", "search", "write_file", "edit_file", "run"),
    *("diff", "restore", "history", "finish", "finish in a round", "blocked"),
)
_REPOSITORY_TOOLS = (
    *("github_get_repo", "github_list_issues", "github_list_pull_requests", "github_list_org_repos"),
    *(
        "github_list_my_orgs",
        "github_get_user",
        "github_create_issue",
        "github_update_issue",
        "github_star_repo",
        "github_follow_user",
    ),
)
_PULL_REQUEST_TOOLS = (
    *("github_comment", "github_create_pr_comment", "github_review_pr", "github_create_pr", "github_merge_pr"),
)
_PULL_REQUEST_ANSWERS = (
    *(
        "Held",
        "On Its Way",
        "No Repository",
        "No Thread",
        "No Words",
        "No Branch",
        "Own Pull Request",
        "Not Ours",
        "Closed",
    ),
    *("Draft", "Changes Requested", "No Approval", "Review Awaited", "Not Mergeable"),
)
_REPOSITORY_ANSWERS = (
    *("Held", "On Its Way", "No Repository", "No Title", "No Account", "No Change"),
    *("Not Ours", "Plan Closing", "Sentinel Closing"),
)
_THREAD_TOOLS = ("github_create_issue_comment", "github_graceful_exit", "github_stay_silent", "github_submit_review")

WORK_CONTRACTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "ritual-context": {
        "Ritual Thread Context": frozenset(
            {
                *("ritual_name", "ritual_description", "participants", "workspace", "today", "day_of_week"),
                *("recent_history", "part", "guidance"),
            }
        ),
        **{f"Parts / {part}": _NONE for part in ("analyst", "critic", "observer")},
        "Earlier Run": frozenset({"date", "note", "url"}),
        "No Earlier Run": _NONE,
    },
    "ritual-initiation": {
        "System Prompt": frozenset(
            {"ritual_name", "ritual_description", "participants", "workspace", "bluesky_username"}
        ),
        "User Message Template": frozenset(
            {"ritual_name", "today", "day_of_week", "recent_history", "self_context", "owner_said"}
        ),
        "Owner Said": frozenset({"comments"}),
        "Tool": _NONE,
        "Once More": frozenset({"problem", "most"}),
        **{f"Problems / {problem}": _NONE for problem in get_args(OpeningProblem)},
    },
    "ritual-memo": {
        "System Prompt": frozenset({"ritual_name", "ritual_description", "workspace", "part", "guidance"}),
        "User Message Template": frozenset({"today", "day_of_week", "recent_history", "said", "posts", "standing"}),
        "Standing": frozenset({"memo"}),
        "Tool": _NONE,
        "Once More": frozenset({"problem"}),
        **{f"Problems / {problem}": _NONE for problem in get_args(MemoProblem)},
    },
    "commitments": {
        "System Prompt": frozenset({"bluesky_username"}),
        "Announcement Message": frozenset({"said", "what"}),
        "Announcement Tool": frozenset(),
        "Extraction": frozenset({"agent_name"}),
        "Extraction Message": frozenset({"replies", "repo", "conversation"}),
        "Enrichment": frozenset(),
        "Enrichment Message": frozenset({"title", "repo", "description", "conversation"}),
    },
    "plan-synthesis": {
        "System Prompt": _NONE,
        "From a Commitment": frozenset({"repo", "title", "wanted", "said", "stands"}),
        "From a Draft": frozenset({"repo", "draft", "stands"}),
        "From Issues": frozenset({"repo", "issues", "stands"}),
        "What Stands": frozenset({"text"}),
        "Nothing Stands": _NONE,
        "Issue": frozenset({"number", "text"}),
        "Tool": _NONE,
        "Missing Prompt": _NONE,
        "What Is Missing": frozenset({"repo", "wanted", "tasks", "left"}),
        "Missing Tool": _NONE,
    },
    "pr-review": {
        "System Prompt": frozenset({"github_username", "repo", "number"}),
        "Message": frozenset(
            {
                *("title", "author", "head", "base", "stats"),
                *("opening", "diff", "hidden", "left_out", "comments"),
            }
        ),
        "Hidden": frozenset({"text"}),
        "Left Out": frozenset({"count"}),
    },
    "code-review": {
        "System Prompt": frozenset({"github_username", "repo", "number"}),
        "Message": frozenset(
            {
                *("title", "author", "head", "base", "stats", "task", "asked", "earlier", "said"),
                *("opening", "diff", "hidden", "left_out", "tests", "weakened"),
            }
        ),
        **dict.fromkeys(("Task", "Asked", "Since", "Said", "Hidden"), frozenset({"text"})),
        "Earlier Review": frozenset({"text", "state", "sha"}),
        "No Call": _NONE,
        "Left Out": frozenset({"count"}),
        **{f"Tests / {state}": frozenset({"commands", "output"}) for state in _TEST_STATES},
        "Weakened": frozenset({"changes"}),
        "Descriptions / submit_review": _NONE,
        "Revision": frozenset({"repo", "task", "reviews", "text"}),
    },
    "merge-conflict": {
        "Message": frozenset({"repo", "branch", "base", "task", "conflicts", "ours", "theirs"}),
        "Not Resolved": frozenset({"files"}),
    },
    "plans": {
        "Verification": _NONE,
        **dict.fromkeys(_PLAN_PAGES, frozenset({"repo"})),
        "For Issues": frozenset({"issues"}),
    },
    "workspace-health": {
        "System Prompt": _NONE,
        "Message": frozenset({"repo", "pages", "plans"}),
        "Page": frozenset({"name", "text", "left_out"}),
        "Closed Plan": frozenset({"text", "left_out"}),
        "Left Out / Lines": frozenset({"count"}),
        "Left Out / Tasks": frozenset({"count"}),
        "Once More": frozenset({"problem"}),
        "Problems / No Verdict": _NONE,
        "Problems / Complete": _NONE,
        "Problems / Summary": frozenset({"most"}),
        "Problems / Remaining": frozenset({"most"}),
        "Problems / Contradiction": _NONE,
        "Tool": _NONE,
        "Nothing Open": _NONE,
        "Rounds Over": frozenset({"summary"}),
        "Issue Title": frozenset({"summary"}),
        "Issue Body": frozenset({"remaining"}),
        "Feedback Title": frozenset({"number", "summary"}),
        "Feedback Body": frozenset({"number", "comments"}),
        "Feedback Comment": frozenset({"author", "text"}),
    },
    "coding": {
        "System Prompt": _NONE,
        "Message": frozenset({"repo", "plan", "task", "tests", "tries"}),
        "No Tries": _NONE,
        "Tests Before / None": _NONE,
        "Tests Before / Not Installed": frozenset({"reason"}),
        **{
            f"Tests Before / {outcome}": frozenset({"commands"})
            for outcome in ("Passed", "Missing", "Failed", "No Result")
        },
        "No Call": _NONE,
        **{f"Descriptions / {tool}": _NONE for tool in _CODING_TOOLS},
        "Descriptions / run": frozenset({"seconds", "most"}),
        "Answers / Run Timeout": frozenset({"output", "seconds", "most"}),
        "Answers / Nothing": _NONE,
        **{f"Answers / {answer}": frozenset({"reason"}) for answer in ("Not Understood", "Not Done")},
        **{f"Answers / {answer}": frozenset({"path"}) for answer in ("Outside", "No File", "No Text", "Too Long")},
        **{f"Answers / {answer}": frozenset({"files"}) for answer in ("Files Unchanged", "Owner Asked")},
        **{f"Answers / {answer}": _NONE for answer in ("Nothing Changed", "Not There")},
        "Answers / Not In Encoding": frozenset({"path", "encoding", "character"}),
        "Answers / Bad Pattern": frozenset({"reason"}),
        "Answers / Not Found": frozenset({"near"}),
        "Answers / Not Once": frozenset({"count", "lines"}),
        **{f"Answers / {answer}": frozenset({"output"}) for answer in ("Run Failed", "Disk Full", "Check Failed")},
        "Answers / Look First": frozenset({"diff"}),
        "Answers / Nothing Differs": _NONE,
        "Answers / Condensed": frozenset({"count"}),
        **{f"Answers / {answer}": frozenset({"steps", "tokens", "minutes"}) for answer in ("Left", "Nearly Over")},
        "Gates / secret": _NONE,
        **{f"Gates / {gate}": frozenset({"about"}) for gate in ("not_text", "too_large", "hidden")},
        "Earlier Work / Fits": _NONE,
        "Earlier Work / Does Not Fit": frozenset({"diff"}),
    },
    "task-document": {
        "System Prompt": _NONE,
        "Message": frozenset({"path", "repo", "form", "plan", "task", "standing", "goal"}),
        **{f"Forms / {form}": frozenset({"path"}) for form in ("Agents Page", "Scenarios Page", "Other")},
        "Standing": frozenset({"document"}),
        "No Document": _NONE,
        "Once More": frozenset({"problem"}),
        **{f"Problems / {problem}": _NONE for problem in get_args(DocumentProblem)},
        "Problems / Goal": frozenset({"words"}),
    },
    "repository-tools": {
        **{f"Descriptions / {tool}": _NONE for tool in _REPOSITORY_TOOLS},
        **{f"Answers / {answer}": frozenset({"reason"}) for answer in ("Unread", "Refused", "Not Done")},
        **{f"Answers / {answer}": _NONE for answer in _REPOSITORY_ANSWERS},
        "Answers / Other Repository": frozenset({"repo"}),
    },
    "pull-request-tools": {
        **{f"Descriptions / {tool}": _NONE for tool in _PULL_REQUEST_TOOLS},
        **{f"Answers / {answer}": frozenset({"reason"}) for answer in ("Unread", "Refused", "Not Done")},
        **{f"Answers / {answer}": _NONE for answer in _PULL_REQUEST_ANSWERS},
        "Answers / Other Repository": frozenset({"repo"}),
    },
    "workspace-tools": {
        **{f"Descriptions / {tool}": _NONE for tool in _WORKSPACE_TOOLS},
        **{f"Answers / {answer}": frozenset({"reason"}) for answer in ("Unread", "Refused", "Not Done", "Which Task")},
        **{f"Answers / {answer}": frozenset({"task"}) for answer in ("Taken Next", "Left Alone")},
        **{f"Answers / {answer}": frozenset({"repo"}) for answer in ("Other Repository", "Not Watched")},
        **{
            f"Answers / {answer}": _NONE
            for answer in ("No Org", "Held", "On Its Way", "No Repository", "No Title", "No Task")
        },
        "Answers / Others First": frozenset({"awaited"}),
        "Answers / Other Organisation": frozenset({"org"}),
        "Answers / One Already": frozenset({"workspace"}),
        "Answers / Work Left": frozenset({"count", "listed"}),
    },
    "github-tools": {
        **{f"Descriptions / {tool}": _NONE for tool in _THREAD_TOOLS},
        "Answers / Too Long": frozenset({"length", "most"}),
        "Answers / Elsewhere": frozenset({"thread"}),
        "Answers / Blocked": frozenset({"reason"}),
        **{
            f"Answers / {answer}": _NONE
            for answer in (
                "Empty",
                "Introduction",
                "Instructions",
                "Repeats",
                "Loops",
                "Unfinished",
                "Person",
                "Given Up",
                "Held",
                "Sent",
                "Silent",
            )
        },
    },
    "github-response": {
        "System Prompt": frozenset({"github_username", "repo", "number", "peer_section", "work_section"}),
        "Work": _NONE,
        "User Message Template": frozenset({"source", "reason", "opening", "line", "hidden", "comments"}),
        "Line": frozenset({"changes"}),
        **{f"Source / {name}": _NONE for name in ("Notification", "Shared", "Shared By Owner", "Workspace")},
        "Hidden": frozenset({"count"}),
        "No Comments": _NONE,
    },
    "github-announcement": {
        "System Prompt": frozenset({"bluesky_username"}),
        "Context": frozenset({"title", "repo", "url"}),
        "Announcement Decision": frozenset({"context"}),
        "Bluesky Post": frozenset({"context"}),
        "Once More": frozenset({"problem", "url", "most"}),
        "Problems / Too Long": _NONE,
        "Problems / Without Link": _NONE,
        "Problems / Other Link": _NONE,
        "Problems / Markup": _NONE,
    },
    "work-request": {
        "System Prompt": _NONE,
        "Message": frozenset({"comments"}),
        "Examples": _NONE,
    },
    "repository-pages": {
        "System Prompt": _NONE,
        "Message": frozenset({"names"}),
        "Examples": _NONE,
    },
    "repository-rules": {
        "System Prompt": _NONE,
        "Message": frozenset({"rules"}),
        "Examples": _NONE,
    },
}
