"""What the model is asked about commitments, over real HTTP, and how its answers are used.

Proves with GitHub's own Markdown that our texts there notify nobody and stay readable.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock
from common.schemas import Commitment
from common.text.github_text import comment_body, without_mentions
from modules.runtime.scheduler.policy import Outcome
from modules.services.agent.one_sentence import SentenceAsker
from modules.services.commitments import texts
from modules.services.commitments.acts import announcement_target
from modules.services.commitments.writer import (
    CommitmentWriter,
    Extraction,
    ReplyCommitments,
    as_commitments,
    commitment_request,
    read_extracted,
)
from modules.services.outbox.bodies import ReplyBody
from modules.services.outbox.types import ProposedAction
from modules.services.plans.events import PLAN_ASKED, PLAN_ENDS, ask_of
from modules.services.skills.skills import Skills
from modules.services.work.loop import WorkLoop
from soul.resources import SKILLS
from tests.modules.runtime.llm.scripted_model import Reply, ScriptedModel, calls, refuses, says, scripted_gateway
from tests.modules.services.agent.prompt.prompt_home import PromptHome
from tests.modules.services.commitments.commitment_values import queued, wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown
from tests.modules.services.outbox.body_values import reply_body
from tests.patience import until
from tests.shipped_skills import phrase

THREAD = "at://did:plc:kit/app.bsky.feed.post/3k"
FOUND = [
    {
        "description": "Open two issues",
        "type": "create_issue",
        "params": {"title": "Flaky tests", "repo": "acme/site", "count": 2},
        "confidence": "high",
    },
    {"description": "Post about it", "type": "post_bluesky", "params": {"content": "Rain."}, "confidence": "medium"},
    {"description": "Perhaps a plan", "type": "create_plan", "params": {}, "confidence": "low"},
]


@pytest.fixture
async def writer(soul_in_town: SoulInTown, model: ScriptedModel, tmp_path: Path) -> AsyncIterator[CommitmentWriter]:
    clock = FakeClock()
    gateway = scripted_gateway(
        model.url,
        clock=clock,
        console=soul_in_town.console,
        max_retries=0,
    )
    prompts, skills = PromptHome(tmp_path / "home"), Skills.load(SKILLS)
    yield CommitmentWriter(
        agent_name="Rowan",
        gateway=gateway,
        sentences=SentenceAsker(lambda: "rowan.test", gateway, prompts.prompter, skills, clock),
        skills=skills,
        journal=soul_in_town.journal,
        rng=random.Random(7),
    )
    await gateway.aclose()


def asked(model: ScriptedModel) -> str:
    return json.dumps(model.requests[-1]["messages"])


async def test_commitments_are_found_in_our_words_and_doubtful_ones_left_out(
    writer: CommitmentWriter, model: ScriptedModel
) -> None:
    model.plays(says(f"Here you are:\n```json\n{json.dumps(FOUND)}\n```"))
    found = await writer.extract_commitments(["I'll open two issues."], context="@kit: flaky!", repo="acme/site")
    assert [one.type for one in found] == ["create_issue", "post_bluesky"]
    assert "I'll open two issues." in asked(model)
    assert "flaky!" in asked(model)
    assert model.requests[-1]["temperature"] == 0


async def test_words_without_a_commitment_cost_no_call(writer: CommitmentWriter, model: ScriptedModel) -> None:
    before = len(model.requests)
    assert await writer.extract_commitments(["What a day.", "You should open an issue."]) == ()
    assert len(model.requests) == before


@pytest.mark.parametrize("answer", ["no idea", "{}", "[7]", "[" * 2_000 + "]" * 2_000, '[{"params": [], "ty'])
def test_an_answer_that_makes_no_sense_holds_no_commitment_and_says_so(answer: str) -> None:
    assert read_extracted(answer) == Extraction(error="it holds no JSON array of commitments")


@pytest.mark.parametrize("answer", ["```json\n[]\n```", "The talk [of today] holds none: [ ]"])
def test_an_empty_array_says_that_nothing_was_committed(answer: str) -> None:
    assert read_extracted(answer) == Extraction()


@pytest.mark.parametrize("around", ["I found [3] promises: {}", "Of [] and [1, 2]: {} [end]", "{} as in [] or [{{]"])
def test_the_commitments_are_found_whatever_stands_around_them(around: str) -> None:
    read = read_extracted(around.format(json.dumps(FOUND)))
    assert [one.type for one in read.found] == ["create_issue", "post_bluesky", "create_plan"]
    assert (read.left_out, read.error) == ((), "")


async def test_what_is_no_commitment_is_left_out_and_told_with_its_reason(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    song = {"description": "Sing\na song", "type": "sing", "confidence": "high"}
    model.plays(says(json.dumps([song, 7, *FOUND])))
    found = await writer.extract_commitments(["I'll open two issues."], done=["create_issue"])
    assert [one.type for one in found] == ["post_bluesky"]
    (error,) = await soul_in_town.journal.recent(10, {"error"})
    assert error.entry.summary == "Left out of the commitments that were found"
    assert error.entry.reason.startswith("Sing a song: type: ")
    assert "; 7: (root): " in error.entry.reason
    (decision,) = await soul_in_town.journal.recent(10, {"decision"})
    assert decision.entry.summary == "Not taken as commitments"
    assert decision.entry.reason == ("Open two issues: it was done in the same breath; Perhaps a plan: it is a guess")


async def test_a_model_that_is_away_changes_nothing_and_is_told(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    model.plays(refuses(503), refuses(503))
    assert await writer.extract_commitments(["I'll open it."]) == ()
    thin = Commitment(type="create_issue", title="Flaky tests", description="Fix them", repo="acme/site")
    assert await writer.enrich(thin, "@kit: they fail") == "Fix them"
    assert sum("could not be asked" in line for line in soul_in_town.told()) == 2


async def test_a_thin_body_is_written_in_full_and_a_full_one_stays(
    writer: CommitmentWriter, model: ScriptedModel
) -> None:
    thin = Commitment(type="create_issue", title="Flaky tests", description="Fix them", repo="acme/site")
    body = "The tests fail one time in five.\n\n## Done when\n- [ ] 200 runs pass"
    model.plays(says(body), says("Too short"))
    assert await writer.enrich(thin, "@kit: they fail") == body
    assert "they fail" in asked(model)
    assert await writer.enrich(thin, "") == "Fix them"
    before = len(model.requests)
    full = thin.model_copy(update={"description": "x" * 80})
    assert await writer.enrich(full, "") == "x" * 80
    comment = Commitment(type="comment_issue", description="Short", issue_number=1)
    assert await writer.enrich(comment, "") == "Short"
    assert len(model.requests) == before


BODY = "The tests fail one time in five.\n\n## Done when\n- [ ] 200 runs pass"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (says(f"```markdown\n{BODY}\n```"), BODY),
        (says(f"```\n{BODY}\n```\n"), BODY),
        (says(BODY, finish="length"), "Fix them"),
        (says(f"{BODY}\n```\nmake test"), "Fix them"),
        (says(BODY + "\n- [ ] The tests of the page pass." * 5), "Fix them"),
        (says(BODY + "\n" + "The tests of the page fail. " * 5), "Fix them"),
    ],
    ids=["fenced", "fenced plainly", "cut off", "open code", "a loop of lines", "a loop of sentences"],
)
async def test_a_body_is_taken_without_a_fence_around_it_and_only_whole_and_without_a_loop(
    writer: CommitmentWriter, model: ScriptedModel, answer: Reply, body: str
) -> None:
    model.plays(answer)
    thin = Commitment(type="create_issue", title="Flaky tests", description="Fix them", repo="acme/site")
    assert await writer.enrich(thin, "@kit: they fail") == body


def test_a_decision_becomes_a_commitment_with_all_that_the_queue_needs() -> None:
    commitment = Commitment(type="comment_issue", repo="acme/site", content="Cache it", issue_number=4)
    made = commitment_request(
        commitment,
        source="space",
        thread="space://conversation/1",
        said="On it",
        target="acme/site#4",
        host_request=True,
    )
    assert made.description == "Cache it"
    assert made.params.as_json() == {
        "content": "Cache it",
        "repo": "site",
        "owner": "acme",
        "repoName": "site",
        "issueNumber": 4,
        "target": "acme/site#4",
        "hostRequest": True,
    }


@pytest.mark.parametrize(
    ("params", "repo"), [({}, "acme/site"), ({"repo": "none"}, "acme/site"), ({"repository": "acme/docs"}, "acme/docs")]
)
def test_a_commitment_that_names_no_repository_is_for_the_one_that_is_talked_about(
    params: dict[str, str], repo: str
) -> None:
    found = [{"description": "File it", "type": "create_issue", "params": params, "confidence": "high"}]
    (one,) = as_commitments(read_extracted(json.dumps(found)).found, repo="acme/site").valid
    assert one.repo == repo


async def test_a_reply_on_bluesky_that_commits_to_something_is_remembered(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    body = "The tests fail one time in five.\n\n## Done when\n- [ ] 200 runs pass"
    model.plays(says(json.dumps(FOUND[:1])), says(body))
    queued_commitments = ReplyCommitments(soul_in_town.queue, writer, soul_in_town.journal)
    (one,) = await queued_commitments.note_reply("I'll open two issues.", to_uri=THREAD, conversation="@kit: flaky!")
    assert (one.source, one.source_thread_uri, one.type) == ("bluesky", THREAD, "create_issue")
    assert one.params.as_json()["count"] == 2
    assert one.params.as_json()["description"] == body
    assert any(line.startswith("Committed: Open two issues") for line in soul_in_town.told())
    model.plays(says(json.dumps(FOUND[:1])), says(body))
    assert await queued_commitments.note_reply("I'll open two issues.", to_uri=THREAD) == []


async def committed_on_bluesky(soul_in_town: SoulInTown, writer: CommitmentWriter) -> str:
    """Send a reply, put its commitment into the queue, and return the uri of the reply."""
    soul_in_town.writer = writer
    await soul_in_town.restart()
    draft = ProposedAction(reply_body("I'll file it.", THREAD), by_owner=True)
    await soul_in_town.outbox.submit(draft)
    await soul_in_town.outbox.deliver_due()
    account = soul_in_town.town.network.find("rowan-soul")
    assert account is not None
    soul_in_town.town.network.create_repo(account, "notes")
    await soul_in_town.enqueue(wanted(thread=THREAD, source="bluesky", owner="rowan-soul", repoName="notes"))
    (row,) = await soul_in_town.outbox.by_target("reply", THREAD)
    return row.result_uri or ""


async def test_on_bluesky_it_is_told_below_the_commitment_in_words_of_our_own(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    ours = await committed_on_bluesky(soul_in_town, writer)
    model.plays(calls(("tell_it_is_done", json.dumps({"sentence": "The checklist has a home now."}))))
    await soul_in_town.live(100)
    (row,) = await soul_in_town.outbox.by_target("reply", ours)
    assert row.state == "done"
    assert isinstance(row.body, ReplyBody)
    assert row.body.text == f"The checklist has a home now.\n\n{soul_in_town.town.url}/rowan-soul/notes/issues/1"
    assert row.body.root.uri == THREAD
    assert "I observe before I speak." in asked(model)


async def test_a_room_that_was_promised_the_same_as_a_post_is_told_too(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    ours = await committed_on_bluesky(soul_in_town, writer)
    again = wanted(owner="rowan-soul", repoName="notes")
    assert not (await soul_in_town.queue.enqueue_commitment(again)).new
    model.plays(calls(("tell_it_is_done", json.dumps({"sentence": "The checklist has a home now."}))))
    await soul_in_town.live(100)
    (row,) = await soul_in_town.outbox.by_target("reply", ours)
    assert row.state == "done"
    (commitment,) = soul_in_town.queue.all()
    told = await soul_in_town.outbox.standing("space_chat", announcement_target(commitment.id))
    assert told.code == "done"
    assert told.intent
    assert "/rowan-soul/notes/issues/1" in told.intent.body.as_json


async def test_who_else_asked_for_a_plan_is_noted_to_be_told_its_end(soul_in_town: SoulInTown) -> None:
    other = "at://did:plc:bob/app.bsky.feed.post/1"
    plan = {"title": "Release checklist", "body": "The plan."}
    account = soul_in_town.town.network.find("rowan-soul")
    assert account is not None
    soul_in_town.town.network.create_repo(account, "notes")
    here = {"owner": "rowan-soul", "repoName": "notes"}
    for thread in (THREAD, other):
        asked_for = wanted(kind="create_plan", thread=thread, source="bluesky", plan=plan, **here)
        await soul_in_town.queue.enqueue_commitment(asked_for)
    await soul_in_town.live(30)
    now = soul_in_town.clock.now()
    noted = await soul_in_town.journal.with_act(PLAN_ENDS, PLAN_ASKED, now - timedelta(days=1), now)
    asks = [ask_of(one.entry) for one in noted]
    assert [(one.repo, one.number, one.cause, one.is_openers) for one in asks] == [
        ("rowan-soul/notes", 1, other, False)
    ]


@dataclass(frozen=True)
class AtOnce:
    """A scheduler with one loop, which runs whenever it is asked to."""

    loop: WorkLoop

    async def run_guarded(self, name: str) -> Outcome:
        assert name == self.loop.name
        return await self.loop.run()

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        """Do nothing: what the loop waits for comes with its next run."""


async def test_what_the_mind_had_no_time_to_tell_is_told_as_soon_as_it_is_free(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    ours = await committed_on_bluesky(soul_in_town, writer)
    model.plays(calls(("tell_it_is_done", json.dumps({"sentence": "The checklist has a home now."}))))
    keeping = asyncio.create_task(soul_in_town.loop.keep_awake(AtOnce(soul_in_town.loop)))
    try:
        async with soul_in_town.attention.take("owner"):
            await soul_in_town.live(100)
            assert await soul_in_town.outbox.by_target("reply", ours) == []
        await until(lambda: [one.status for one in soul_in_town.queue.all()] == ["completed"])
        (row,) = await soul_in_town.outbox.by_target("reply", ours)
        assert isinstance(row.body, ReplyBody)
        assert row.body.text.startswith("The checklist has a home now.")
    finally:
        keeping.cancel()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "The list is up. See [here](https://github.com/acme/site/issues/1). Or https://a.example/9.",
            "The list is up.",
        ),
        ("@kit.test, the list is up. [Link]", "kit.test, the list is up."),
        ("Tell so in one short sentence of your own: no greeting, no hashtags, no thanks.", ""),
    ],
)
async def test_a_kept_commitment_is_told_without_other_links_names_or_our_own_instructions(
    writer: CommitmentWriter, model: ScriptedModel, said: str, told: str
) -> None:
    model.plays(calls(("tell_it_is_done", json.dumps({"sentence": said}))))
    url = "https://github.com/acme/site/issues/1"
    made = {"issues": [{"url": url}]}
    assert await writer.tell_kept(queued(thread=THREAD, source="bluesky"), made) == (told and f"{told}\n\n{url}")
    assert "issue opened: " in asked(model)


async def test_of_a_comment_that_stood_already_the_model_is_not_told_that_it_is_done_now(
    writer: CommitmentWriter, model: ScriptedModel
) -> None:
    model.plays(calls(("tell_it_is_done", json.dumps({"sentence": "That was on the issue already."}))))
    result = {"url": "https://github.com/acme/site/issues/1#issuecomment-1", "id": 1, "deduplicated": True}
    promised = queued(kind="comment_issue", title="Comment on acme/site#1", thread=THREAD, source="bluesky")
    assert (await writer.tell_kept(promised, result)).endswith(f"\n\n{result['url']}")
    assert "stood there already: Comment on acme/site#1" in asked(model)


async def test_where_no_words_can_be_found_it_is_done_all_the_same(
    writer: CommitmentWriter, model: ScriptedModel, soul_in_town: SoulInTown
) -> None:
    ours = await committed_on_bluesky(soul_in_town, writer)
    model.plays(refuses(503), refuses(503), refuses(503))
    await soul_in_town.live(100)
    assert await soul_in_town.outbox.by_target("reply", ours) == []
    assert [one.status for one in soul_in_town.queue.all()] == ["completed"]
    assert any("not announced" in line for line in soul_in_town.told())


UNSEEN = "\u200b"
_OPTIONS = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_GITHUB_PRE_LANG | Options.CMARK_OPT_FOOTNOTES
_MENTION = re.compile(r"(?:^|[^0-9A-Za-z])@[0-9A-Za-z]")
_SILENT = {"pre", "code", "tt", "a", "style", "script"}
_VOID = {"br", "hr", "img", "input", "wbr", "col", "meta", "link", "source"}

FORMS = [
    "ask @kit about it",
    "@kit, @acme/team",
    "<div>\n```\n@kit\n```\n</div>",
    "<details><summary>more</summary>\n```\n@kit\n```\n</details>",
    "<!--\n```\n-->\n@kit\n<!--\n```\n-->",
    '<a title="`">@kit</a> <b title="`">@kit</b>',
    "| a | b |\n|---|---|\n| `x | @kit` |",
    "<https://x.example/`> @kit <https://x.example/`>",
    "&#64;kit",
    "&#0064;kit and &#x40;kit and &#X0040;kit and &commat;kit",
    "<div>\n&#64kit &#x40kit\n</div>",
    "<div>\na&#32@kit a&nbsp@kit\n</div>",
    "_@kit_ and __@kit__",
    "x<b></b>@kit x<!-- -->@kit",
    "x/@kit and x\\@kit",
    "\u00e9@kit \u5b57@kit",
    "- ```\n  x\n@kit\n  ```",
    "> ```\n\n@kit",
    "words\n    ```\n@kit",
    "``` a ``` @kit",
    "`` @kit `",
    "\\`@kit\\`",
    "[@kit](https://x.example/) ![@kit](x) [@kit](y",
    "[x]: y '`'\n@kit `",
    "~~~ `\n~~~\n@kit `",
    "<pre>\n</pre>\n@kit\n<pre>",
    "a[^1]\n\n[^1]: @kit `",
    "# @kit\n\n- [ ] @kit\n\n***@kit***",
    "@@kit and @\u200b@kit",
    "(https://x.example/a) @kit",
]


class _Mentions(HTMLParser):
    """Finds mentions outside of code and links, where GitHub looks for them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT and tag not in _VOID:
            self._silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.found += _MENTION.findall(data)


def _rendered(text: str) -> str:
    return str(cmarkgfm.github_flavored_markdown_to_html(text, _OPTIONS))


def _mentions(text: str) -> list[str]:
    finder = _Mentions()
    finder.feed(_rendered(text))
    finder.close()
    return finder.found


def test_no_form_of_a_mention_comes_through() -> None:
    for text in FORMS:
        assert _mentions(text), text
        assert _mentions(without_mentions(text)) == [], text
        assert _mentions(comment_body(text)) == [], text
        assert _mentions(texts.issue_body(queued(text=text), text, phrase)) == [], text


PIECES = (
    *(
        "@",
        "kit",
        "`",
        "```",
        "~~~",
        "\n",
        " ",
        "    ",
        "> ",
        "- ",
        "<div>",
        "</div>",
        "<pre>",
        "</pre>",
        "<!--",
        "-->",
    ),
    *("<a href='", "'>", "</a>", "&#64", "&#x40", ";", "0", "&commat;", "|", "\\", "_", "*", "[", "](", ")", "&#32"),
    *("https://x.example/", "www.x.example/", UNSEEN, "\u00e9", "%40", "<b>", "</b>", "&amp;", "\t", "~~", "# "),
)


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_nobody_is_notified_whatever_the_words_are_put_together_from(text: str) -> None:
    once = without_mentions(text)
    assert _mentions(once) == []
    assert without_mentions(once) == once


@given(st.text(alphabet="@k` \n~", max_size=40))
def test_nothing_is_lost_by_it_but_the_call(text: str) -> None:
    assert without_mentions(text).replace(UNSEEN, "") == text


@pytest.mark.parametrize(
    "text",
    [
        "```python\n@dataclass\nclass Weir: ...\n```",
        "run `npm install @types/node` and `pip install git+ssh://git@host/x`",
        "mail kit@example.org",
        "meet at @ noon",
    ],
)
def test_code_and_addresses_read_as_they_did(text: str) -> None:
    told = without_mentions(text)
    assert told.replace(UNSEEN, "") == text
    assert _rendered(told).replace(UNSEEN, "").count("<code") == _rendered(text).count("<code")


@pytest.mark.parametrize("url", ["https://x.example/@kit", "https://unpkg.com/react@18/x?a=@b", "www.x.example/@kit"])
def test_a_link_with_the_sign_in_its_path_still_leads_there(url: str) -> None:
    told = without_mentions(f"see {url}")
    assert told == f"see {url.replace('@', '%40')}"
    assert f'href="{"" if url.startswith("http") else "http://"}{url.replace("@", "%40")}"' in _rendered(told)
