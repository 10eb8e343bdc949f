"""A public request of the owner's opens only the tools that its words can need."""

from __future__ import annotations

from modules.lives.bluesky.request_policy import (
    REQUEST_TOOLS,
    act_to_do_first,
    asks_all,
    asks_for_shared_work,
    is_request,
    tools_for_request,
)

POST, LIMITED, LIMIT, REPOST, FOLLOW, UNFOLLOW = (
    "bluesky_post",
    "bluesky_post_limited",
    "bluesky_limit_replies",
    "bluesky_repost",
    "bluesky_follow",
    "bluesky_unfollow",
)
NEEDED: tuple[tuple[str, set[str]], ...] = (
    ("@rowan.test please follow @kit.test", {FOLLOW}),
    ("@rowan.test @wren.test follow @kit.test, both of you", {FOLLOW}),
    ("@rowan.test could you follow @post.test?", {FOLLOW}),
    ("@rowan.test Bitte folge @moss.test", {FOLLOW}),
    ("@rowan.test ¿puedes seguir a @kit.test?", {FOLLOW}),
    ("@rowan.test please unfollow @kit.test", {UNFOLLOW}),
    ("@rowan.test stop following @kit.test", {UNFOLLOW}),
    ("@rowan.test folge @kit.test bitte nicht mehr", {UNFOLLOW}),
    ("@rowan.test folge @kit.test, sie schreibt mehr als andere", {FOLLOW}),
    ("@rowan.test deja de seguir a @kit.test", {UNFOLLOW}),
    ("@rowan.test ne suis plus @kit.test", {UNFOLLOW}),
    ("@rowan.test smetti di seguire @kit.test", {UNFOLLOW}),
    ("@rowan.test post something about rain", {POST}),
    ("@rowan.test Rain again. Post a thought about it, please", {POST}),
    ("@rowan.test please publish what you said about slate", {POST}),
    ("@rowan.test Schreib bitte etwas über Regen", {POST}),
    ("@rowan.test follow @kit.test and post why", {FOLLOW, POST}),
    ("@rowan.test please share this", {POST, REPOST}),
    ("@rowan.test share a thought about rain", {POST}),
    ("@rowan.test please share this post", {REPOST}),
    ("@rowan.test any thought about rain?", set()),
    ("@rowan.test please boost this post", {REPOST}),
    ("@rowan.test let nobody reply to your newest post", {LIMIT}),
    ("@rowan.test only followers may comment under your last post", {LIMIT}),
    ("@rowan.test please post about the ferry, and let only your followers reply", {LIMITED}),
    ("@rowan.test please open an issue in acme/site: the clock stops", set()),
    ("@rowan.test please make a workspace called tide-table, and write a plan there", set()),
    ("@rowan.test make a workspace, and post about it", {POST}),
    ("@rowan.test fix the clock in https://follow.test/post", set()),
    ("@rowan.test what is the best thing about autumn?", set()),
    ("@rowan.test I walked where the river is wide", set()),
    ("@rowan.test Great post!", set(REQUEST_TOOLS)),
    ("@rowan.test kitさんをフォローして", set(REQUEST_TOOLS)),
    ("@rowan.test obserwuj @kit.test", set(REQUEST_TOOLS)),
    ("@rowan.test Czy możesz obserwować @kit.test?", set(REQUEST_TOOLS)),
)
"""The owner's words, and the tools that they can need; all of them where the words are not known."""
FIRST: tuple[tuple[str, str], ...] = (
    ("@rowan.test please follow @kit.test", FOLLOW),
    ("@rowan.test could you follow @kit.test? Her notes on gutters are good.", FOLLOW),
    ("@rowan.test I'd like you to follow @kit.test", FOLLOW),
    ("@rowan.test Kannst du bitte @kit.test folgen?", FOLLOW),
    ("@rowan.test Peux-tu suivre @kit.test ?", FOLLOW),
    ("@rowan.test ¿puedes seguir a @kit.test?", FOLLOW),
    ("@rowan.test please unfollow @kit.test", UNFOLLOW),
    ("@rowan.test könntest du @kit.test entfolgen?", UNFOLLOW),
    ("@rowan.test Rain again. Post a thought about it, please", POST),
    ("@rowan.test tell everybody that the ferry leaves at nine", POST),
    ("@rowan.test kun je iets over regen schrijven?", POST),
    ("@rowan.test Schreib bitte, dass die Fähre um neun fährt, und lass niemanden antworten", LIMITED),
    ("@rowan.test spread the word: the swimming pool opens on Sunday", REPOST),
    ("@rowan.test Por favor, comparte esta publicación", REPOST),
    ("@rowan.test let nobody reply to your newest post", LIMIT),
    ("@rowan.test Sperre die Antworten unter deinem letzten Beitrag", LIMIT),
)
NO_FIRST = (
    "@rowan.test please don't unfollow @kit.test",
    "@rowan.test please unfollow the bakery",
    "@rowan.test please don't follow @kit.test",
    "@rowan.test Folge @kit.test nicht",
    "@rowan.test follow up with @kit.test",
    "@rowan.test please follow the bakery",
    "@rowan.test do you follow @kit.test?",
    "@rowan.test folgst du @kit.test?",
    "@rowan.test I will follow @kit.test too",
    "@rowan.test je suis d'accord avec @kit.test",
    "@rowan.test follow @kit.test and post why",
    "@rowan.test please share this",
    "@rowan.test tell me a story about rain",
    "@rowan.test please write to me about slate",
    "@rowan.test say what you think of slate",
    "@rowan.test The sign says: post here",
    "@rowan.test nice tweet!",
    "@rowan.test nobody replies to your posts",
    "@rowan.test only one answer under my post!",
    "@rowan.test write an issue in acme/site: the clock stops",
    "@rowan.test make a workspace, and post about it",
    "@rowan.test kitさんをフォローして",
)
"""Talk, what is denied, what is for the asker's ear, two acts, other work, and what is not known."""
REQUESTS = (
    "@rowan.test please follow @kit.test",
    "@rowan.test please open an issue in acme/site: the clock stops",
    "@rowan.test let nobody reply to your newest post",
    "@rowan.test Bitte folge @moss.test",
)
NO_REQUESTS = (
    "@rowan.test Great post!",
    "@rowan.test I would say that rain is louder on tin",
    "@rowan.test thank you",
    "@rowan.test what is the best thing about autumn?",
)

SHARED_WORK = (
    "@rowan.test @wren.test please make a workspace for a tide table and write a plan",
    "@rowan.test @wren.test I would like a tide table: it prints high water. Open a workspace, and write a plan.",
    "@rowan.test @wren.test could one of you write a plan for a tide table?",
    "@rowan.test I need a plan for the garden",
)
NO_SHARED_WORK = (
    "@rowan.test @wren.test what did you see in the workspace?",
    "@rowan.test @wren.test I love the plan you wrote",
    "@rowan.test did you open the workspace?",
    "@rowan.test please open an issue in acme/site",
    "@rowan.test make a wish in https://workspace.test/plan",
)


EACH = (
    "@rowan.test @wren.test @moss.test please follow @kit.test",
    "@rowan.test @wren.test bitte folgt @kit.test",
    "@rowan.test @wren.test @moss.test ¿podéis seguir a @kit.test?",
    "@rowan.test @wren.test suivez @kit.test, s'il vous plaît",
    "@rowan.test @wren.test volg @kit.test alsjeblieft",
)
ONE = (
    "@rowan.test @wren.test one of you, follow @kit.test",
    "@rowan.test @wren.test einer von euch: bitte folgt @kit.test",
    "@rowan.test @wren.test que uno de vosotros siga a @kit.test",
    "@rowan.test @wren.test folgt ihr @kit.test schon?",
    "@rowan.test @wren.test was haltet ihr von @kit.test?",
)


def test_all_who_are_named_are_asked_unless_it_is_for_one_of_them() -> None:
    assert [text for text in EACH if not asks_all(text)] == []
    assert [text for text in ONE if asks_all(text)] == []


def test_the_words_of_a_request_say_which_tools_it_can_need() -> None:
    assert {text: set(tools_for_request(text)) for text, _ in NEEDED} == dict(NEEDED)


def test_a_request_is_told_from_talk_by_its_form() -> None:
    assert [is_request(text) for text in REQUESTS] == [True] * len(REQUESTS)
    assert [is_request(text) for text in NO_REQUESTS] == [False] * len(NO_REQUESTS)


def test_one_act_that_is_asked_for_beyond_doubt_comes_first() -> None:
    assert {text: act_to_do_first(text) for text, _ in FIRST} == dict(FIRST)
    assert {text: act_to_do_first(text) for text in NO_FIRST} == dict.fromkeys(NO_FIRST, "")


def test_work_that_several_share_is_told_from_talk_about_it() -> None:
    assert [asks_for_shared_work(text) for text in SHARED_WORK] == [True] * len(SHARED_WORK)
    assert [asks_for_shared_work(text) for text in NO_SHARED_WORK] == [False] * len(NO_SHARED_WORK)
