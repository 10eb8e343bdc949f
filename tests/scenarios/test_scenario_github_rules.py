"""What a repository of somebody else says of AI agents is read before the first word there, and heeded."""

from __future__ import annotations

import pytest

from tests.running_town import RunningTown, awake
from tests.scenarios.github_talk import (
    CLOCK,
    PAGES,
    RULES,
    SAID,
    acts,
    commit_files,
    in_foreign_place,
    look,
    minding,
    put_files,
)
from town.model.types import ChatRequest, Completion

FOREIGN = [
    ("no rules", {"CONTRIBUTING": "Write tests."}, "none", "commented", 1),
    ("nothing at all", {}, "none", "commented", 0),
    ("a ban", {"CONTRIBUTING": "Be kind. AI-generated comments are not accepted."}, "forbidden", "silent", 1),
    ("a ban in its README", {"README": "# Tool\n\n## Taking part\n\nNo AI."}, "forbidden", "silent", 1),
    ("a ban in a template", {".github/ISSUE_TEMPLATE/bug": "- [ ] No AI."}, "forbidden", "silent", 1),
    ("conditions", {"AI_POLICY": "You must disclose AI."}, "conditions", "held", 1),
    ("an answer that cannot be read", {"AI_POLICY": "You must disclose AI."}, "well", "held", 2),
    ("a page too long to read", {"CONTRIBUTING": "Write tests. " * 5_000}, "none", "held", 0),
    ("a welcome", {"AI_POLICY": "AI agents are welcome here."}, "allowed", "commented", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "rule", "act", "asked"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN]
)
@pytest.mark.slow
async def test_what_a_repository_says_of_ai_is_read_before_the_first_word_there(
    running_town: RunningTown, files: dict[str, str], rule: str, act: str, asked: int
) -> None:
    running_town.mind.answer = minding(rule=rule)
    async with in_foreign_place(running_town, **files) as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            held = await soul.app.services.outbox.held()
            assert place.comments == ([SAID] if act == "commented" else [])
            assert len(held) == (act == "held")
            assert (await acts(soul))[-1][0] == ("silent" if act == "silent" else "commented")
            read = [one for one in running_town.mind.asked if RULES in one.messages[0].text]
            assert len(read) == asked


@pytest.mark.slow
async def test_the_pages_that_an_owner_shows_for_all_of_their_repositories_are_heeded(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = minding(rule="forbidden")
    async with in_foreign_place(running_town) as place:
        defaults = place.network.create_repo(place.repo.owner, ".github")
        await put_files(place.network, defaults, {"CONTRIBUTING": "KI-Beiträge sind nicht erlaubt."})
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            assert await acts(soul) == [("silent", "unwelcome")]
            (asked,) = [one for one in running_town.mind.asked if RULES in one.messages[0].text]
            assert "KI-Beiträge sind nicht erlaubt." in asked.messages[-1].text
            (told,) = [one for one in await soul.decisions() if one.entry.loop == "repository-rules"]
            assert told.entry.data["path"] == "stranger/.github/CONTRIBUTING.md"


@pytest.mark.slow
async def test_where_it_is_not_clear_the_owner_decides_and_decides_for_the_next_comment_too(
    running_town: RunningTown,
) -> None:
    said = iter([SAID, "Measure the wide one as well, then."])
    running_town.mind.answer = minding(*said, rule="conditions")
    async with in_foreign_place(running_town, AI_POLICY="You must disclose AI.") as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            (draft,) = await soul.app.services.outbox.held()
            assert "AI_POLICY.md has conditions" in (draft.error or "")
            await look(soul)
            assert place.comments == []
            await soul.app.services.outbox.approve(draft.id)
            await soul.send()
            assert place.comments == [SAID]
            place.say("kit", "And then?")
            place.post_link()
            await look(soul)
            assert await soul.app.services.outbox.held() == []
    assert place.comments == [SAID, "Measure the wide one as well, then."]


async def test_where_pull_requests_are_kept_to_its_own_people_the_owner_decides(running_town: RunningTown) -> None:
    running_town.mind.answer = minding()
    async with in_foreign_place(running_town) as place:
        place.repo.pull_policy = "collaborators_only"
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            assert place.comments == []
            assert len(await soul.app.services.outbox.held()) == 1


JAPANESE = {"README": "A tool.", "docs/ja/guide": "\u5f85\u3064", "docs/ja/\u8ca2\u732e": "AI \u306f\u4e0d\u53ef"}


async def test_a_ban_in_the_docs_of_another_language_is_found_and_read_again_only_once_a_page_changed(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = minding(rule="forbidden", pages=("README.md", "\u8ca2\u732e.md"))

    def asked(words: str) -> int:
        return sum(words in one.messages[0].text for one in running_town.mind.asked)

    async with in_foreign_place(running_town, **JAPANESE) as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            assert await acts(soul) == [("silent", "unwelcome")]
            (rules,) = [one.messages[-1].text for one in running_town.mind.asked if RULES in one.messages[0].text]
            assert "AI \u306f\u4e0d\u53ef" in rules
            assert "\u5f85\u3064" not in rules
            await commit_files(place.network, place.repo, {"main.py": "print()"})
            place.say("kit", "@rowan and now?")
            place.post_link()
            await look(soul)
            assert (asked(PAGES), asked(RULES), place.comments) == (1, 1, [])
            running_town.mind.answer = minding(pages=("README.md", "\u8ca2\u732e.md"))
            await commit_files(place.network, place.repo, {"docs/ja/\u8ca2\u732e.md": "AI \u3082\u6b53\u8fce"})
            place.say("kit", "@rowan and now?")
            place.post_link()
            await look(soul)
            assert (asked(PAGES), asked(RULES), place.comments) == (2, 2, [SAID])


@pytest.mark.parametrize("answer", ["README", '{"pages": "all"}'])
async def test_where_the_model_chooses_no_pages_that_can_be_read_the_owner_decides(
    running_town: RunningTown, answer: str
) -> None:
    talk = minding()

    def respond(request: ChatRequest) -> Completion:
        return Completion(text=answer) if PAGES in request.messages[0].text else talk(request)

    running_town.mind.answer = respond
    async with in_foreign_place(running_town, **JAPANESE) as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            (draft,) = await soul.app.services.outbox.held()
            assert "its rules are not known" in (draft.error or "")
            assert place.comments == []
