"""A public request of the owner's opens only the tools that its words can need."""

from __future__ import annotations

from modules.lives.bluesky.request_policy import REQUEST_TOOLS, is_request, tools_for_request

POST, LIMITED, LIMIT, REPOST, FOLLOW = (
    "bluesky_post",
    "bluesky_post_limited",
    "bluesky_limit_replies",
    "bluesky_repost",
    "bluesky_follow",
)
NEEDED: tuple[tuple[str, set[str]], ...] = (
    ("@rowan.test please follow @kit.test", {FOLLOW}),
    ("@rowan.test @wren.test follow @kit.test, both of you", {FOLLOW}),
    ("@rowan.test could you follow @post.test?", {FOLLOW}),
    ("@rowan.test Bitte folge @moss.test", {FOLLOW}),
    ("@rowan.test ¿puedes seguir a @kit.test?", {FOLLOW}),
    ("@rowan.test post something about rain", {POST}),
    ("@rowan.test Rain again. Post a thought about it, please", {POST}),
    ("@rowan.test please publish what you said about slate", {POST}),
    ("@rowan.test Schreib bitte etwas über Regen", {POST}),
    ("@rowan.test follow @kit.test and post why", {FOLLOW, POST}),
    ("@rowan.test please share this", {POST, REPOST}),
    ("@rowan.test please boost this post", {REPOST}),
    ("@rowan.test let nobody reply to your newest post", {LIMIT}),
    ("@rowan.test only followers may comment under your last post", {LIMIT}),
    ("@rowan.test please post about the ferry, and let only your followers reply", {LIMITED}),
    ("@rowan.test please open an issue in acme/site: the clock stops", set()),
    ("@rowan.test fix the clock in https://follow.test/post", set()),
    ("@rowan.test what is the best thing about autumn?", set()),
    ("@rowan.test I walked where the river is wide", set()),
    ("@rowan.test Great post!", set(REQUEST_TOOLS)),
    ("@rowan.test kitさんをフォローして", set(REQUEST_TOOLS)),
    ("@rowan.test obserwuj @kit.test", set(REQUEST_TOOLS)),
    ("@rowan.test Czy możesz obserwować @kit.test?", set(REQUEST_TOOLS)),
)
"""The owner's words, and the tools that they can need; all of them where the words are not known."""
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


def test_the_words_of_a_request_say_which_tools_it_can_need() -> None:
    assert {text: set(tools_for_request(text)) for text, _ in NEEDED} == dict(NEEDED)


def test_a_request_is_told_from_talk_by_its_form() -> None:
    assert [is_request(text) for text in REQUESTS] == [True] * len(REQUESTS)
    assert [is_request(text) for text in NO_REQUESTS] == [False] * len(NO_REQUESTS)
