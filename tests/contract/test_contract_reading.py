"""Tests of reading: profiles, posts, threads, feeds, likes, follows, search.

Tests of threadgates: who may reply to a post, and what becomes of a reply by somebody else. An account's own labels
are shown wherever the account is, so that every reader knows a bot without asking.
"""

from typing import Any

import pytest
from atproto import client_utils, models

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import FOLLOW, LIKE, POST, PROFILE, REPOST, TID, R, post_record

DEFS = "app.bsky.feed.defs"


def set_profile(network: UnderTest, person: Person, **fields: Any) -> None:
    body = {"repo": person.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE, **fields}}
    network.post(f"{R}putRecord", body, person.token).raise_for_status()


def texts(page: Any) -> list[str]:
    return [line.post.record.text for line in page.feed]


@pytest.mark.slow
def test_a_profile_shows_its_record_its_labels_and_its_counts(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    labels = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}
    set_profile(network_under_test, alice, displayName="Alice", description="A test", labels=labels)
    alice.post("one")
    bob.client.follow(alice.did)
    network_under_test.settle()
    shown = bob.client.get_profile(alice.handle)
    assert (shown.did, shown.handle, shown.display_name) == (alice.did, alice.handle, "Alice")
    assert shown.description == "A test"
    assert (shown.posts_count, shown.followers_count, shown.follows_count) == (1, 1, 0)
    assert [(label.val, label.src) for label in shown.labels] == [("bot", alice.did)]
    assert shown.viewer.following.startswith(f"at://{bob.did}/{FOLLOW}/")
    assert alice.client.get_profile(bob.did).viewer.followed_by == shown.viewer.following


def test_an_account_without_a_profile_record_has_a_page_all_the_same(somebody: Person) -> None:
    shown = somebody.client.get_profile(somebody.did)
    assert (shown.handle, shown.labels, shown.display_name or "") == (somebody.handle, [], "")


def test_preferences_of_each_kind_that_we_heed_are_kept(network_under_test: UnderTest, alice: Person) -> None:
    defs, feed = "app.bsky.actor.defs#", "app.bsky.feed."
    word = {"id": "1", "value": "moss", "targets": ["content", "tag"], "actorTarget": "exclude-following"}
    preferences: list[dict[str, Any]] = [
        {"$type": f"{defs}mutedWordsPref", "items": [{**word, "expiresAt": "2030-01-01T00:00:00.000Z"}]},
        {"$type": f"{defs}hiddenPostsPref", "items": [f"at://{alice.did}/{POST}/3jzfcijpj2z2a"]},
        {"$type": f"{defs}labelersPref", "labelers": [{"did": alice.did}]},
        {"$type": f"{defs}contentLabelPref", "label": "rude", "labelerDid": alice.did, "visibility": "hide"},
        {
            "$type": f"{defs}postInteractionSettingsPref",
            "threadgateAllowRules": [{"$type": f"{feed}threadgate#followingRule"}],
            "postgateEmbeddingRules": [{"$type": f"{feed}postgate#disableRule"}],
        },
    ]
    put = network_under_test.post("app.bsky.actor.putPreferences", {"preferences": preferences}, alice.token)
    assert (put.status_code, put.content) == (200, b"")
    told = network_under_test.get("app.bsky.actor.getPreferences", alice.token)
    assert told.json() == {"preferences": preferences}
    typed = alice.client.app.bsky.actor.get_preferences().preferences
    assert [one.py_type for one in typed] == [one["$type"] for one in preferences]


def test_whoever_is_muted_is_not_heard_and_their_page_says_so(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    top = alice.post("which roof is louder?")
    bob.reply("tin", top)
    assert [one.author.did for one in alice.notifications()] == [bob.did]
    alice.client.mute(bob.did)
    network_under_test.settle()
    assert alice.notifications() == []
    assert alice.client.get_profile(bob.did).viewer.muted
    thread: Any = alice.client.get_post_thread(top.uri).thread
    assert [reply.post.author.viewer.muted for reply in thread.replies] == [True]
    alice.client.unmute(bob.did)
    network_under_test.settle()
    assert [one.author.did for one in alice.notifications()] == [bob.did]


def test_several_profiles_come_at_once_without_those_that_are_not(alice: Person, bob: Person) -> None:
    shown = alice.client.get_profiles([alice.did, bob.handle, "nobody-here.test"]).profiles
    assert {profile.did for profile in shown} == {alice.did, bob.did}


@pytest.mark.parametrize(
    ("nsid", "params", "problem"),
    [
        ("app.bsky.actor.getProfile", {"actor": "nobody-here.test"}, "Profile not found"),
        ("app.bsky.graph.getFollows", {"actor": "nobody-here.test"}, "Actor not found: nobody-here.test"),
        ("app.bsky.actor.getProfile", {"actor": "x y"}, 'Invalid {nsid} params: Invalid AT identifier (got "x y")'),
        ("app.bsky.feed.getPosts", {"uris": "at://x/y/z"}, 'Invalid {nsid} params: Invalid at-uri (got "at://x/y/z")'),
        (
            "app.bsky.feed.getPostThread",
            {"uri": f"at://nobody-here.test/{POST}/{TID}", "depth": 1001},
            "Invalid {nsid} params: integer too big (maximum 1000, got 1001)",
        ),
        ("app.bsky.feed.getTimeline", {"limit": 0}, "Invalid {nsid} params: integer too small (minimum 1, got 0)"),
        (
            "app.bsky.notification.listNotifications",
            {"limit": 101},
            "Invalid {nsid} params: integer too big (maximum 100, got 101)",
        ),
    ],
)
def test_a_question_that_has_no_answer_is_refused(
    network_under_test: UnderTest, somebody: Person, nsid: str, params: dict[str, Any], problem: str
) -> None:
    answer = refusal(network_under_test.get(nsid, somebody.token, **params))
    assert answer == (400, "InvalidRequest", problem.format(nsid=nsid))


@pytest.mark.parametrize(
    "nsid", ["app.bsky.actor.getProfile", "app.bsky.feed.getTimeline", "app.bsky.notification.listNotifications"]
)
def test_reading_needs_a_session(network_under_test: UnderTest, somebody: Person, nsid: str) -> None:
    params = {"actor": somebody.did, "uri": f"at://{somebody.did}/{POST}/{TID}", "q": "x"}
    answer = refusal(network_under_test.get(nsid, **params))
    assert answer == (401, "AuthMissing", "Authentication Required")


@pytest.mark.parametrize(
    "nsid", ["app.bsky.feed.getAuthorFeed", "app.bsky.feed.getTimeline", "app.bsky.notification.listNotifications"]
)
def test_a_cursor_that_is_none_is_a_502(network_under_test: UnderTest, somebody: Person, nsid: str) -> None:
    answer = refusal(network_under_test.get(nsid, somebody.token, actor=somebody.did, cursor="zzz"))
    assert answer == (502, "InternalServerError", "Internal Server Error")


def test_a_post_shows_its_counts_and_what_the_viewer_did(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("hello")
    like = bob.client.like(post.uri, post.cid)
    bob.client.like(post.uri, post.cid)
    repost = bob.client.repost(post.uri, post.cid)
    bob.reply("hi", post)
    bob.post("look", embed=models.AppBskyEmbedRecord.Main(record=models.create_strong_ref(post)))
    network_under_test.settle()
    [seen] = bob.client.get_posts([post.uri]).posts
    counts = (seen.like_count, seen.repost_count, seen.reply_count, seen.quote_count)
    assert counts == (1, 1, 1, 1)
    assert seen.viewer.like.startswith(f"at://{bob.did}/{LIKE}/")
    assert seen.viewer.repost == repost.uri
    [by_author] = alice.client.get_posts([post.uri]).posts
    assert (by_author.viewer.like, by_author.viewer.repost) == (None, None)
    likes = alice.client.get_likes(post.uri).likes
    assert [entry.actor.did for entry in likes] == [bob.did]
    assert [actor.did for actor in alice.client.get_reposted_by(post.uri).reposted_by] == [bob.did]
    assert like.uri.startswith(f"at://{bob.did}/{LIKE}/")


def test_undoing_a_like_and_a_follow_takes_them_back(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = alice.post("hello")
    like, follow = bob.client.like(post.uri, post.cid), bob.client.follow(alice.did)
    network_under_test.settle()
    assert [f.did for f in alice.client.get_followers(alice.did).followers] == [bob.did]
    bob.client.unlike(like.uri)
    bob.client.unfollow(follow.uri)
    network_under_test.settle()
    assert alice.client.get_likes(post.uri).likes == []
    assert alice.client.get_followers(alice.did).followers == []
    assert bob.client.get_follows(bob.did).follows == []


def test_a_thread_shows_posts_above_and_replies_below(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    root = alice.post("root")
    first = bob.reply("first", root)
    second = alice.reply("second", first, root)
    bob.reply("third", second, root)
    bob.reply("later", root)
    network_under_test.settle()

    whole = bob.client.get_post_thread(root.uri).thread
    assert whole.py_type == f"{DEFS}#threadViewPost"
    assert [reply.post.record.text for reply in whole.replies] == ["later", "first"]
    assert whole.replies[1].replies[0].replies[0].post.record.text == "third"

    shallow = bob.client.get_post_thread(root.uri, depth=1).thread
    assert shallow.replies[1].post.record.text == "first"
    assert not shallow.replies[1].replies

    middle = bob.client.get_post_thread(second.uri, depth=0, parent_height=1).thread
    assert middle.post.record.text == "second"
    assert middle.parent.post.record.text == "first"
    assert middle.parent.parent is None
    assert not middle.replies


def test_a_thread_marks_what_is_gone(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    root = alice.post("root")
    reply = bob.reply("reply", root)
    alice.delete(root.uri)
    network_under_test.settle()
    thread = bob.client.get_post_thread(reply.uri).thread
    assert thread.parent.py_type == f"{DEFS}#notFoundPost"
    assert (thread.parent.uri, thread.parent.not_found) == (root.uri, True)
    gone = refusal(network_under_test.get("app.bsky.feed.getPostThread", bob.token, uri=root.uri))
    assert gone == (400, "NotFound", f"Post not found: {root.uri}")


def test_a_reply_that_claims_another_root_is_not_in_the_thread(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    root, elsewhere = alice.post("root"), alice.post("elsewhere")
    bob.reply("astray", root, elsewhere)
    network_under_test.settle()
    assert not bob.client.get_post_thread(root.uri).thread.replies
    assert not bob.client.get_post_thread(elsewhere.uri).thread.replies


def test_a_quote_shows_what_it_quotes_until_that_is_gone(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("quote me")
    quote = bob.post("see", embed=models.AppBskyEmbedRecord.Main(record=models.create_strong_ref(post)))
    network_under_test.settle()
    shown = bob.client.get_posts([quote.uri]).posts[0].embed.record
    assert shown.py_type == "app.bsky.embed.record#viewRecord"
    assert (shown.uri, shown.value.text, shown.author.did) == (post.uri, "quote me", alice.did)
    alice.delete(post.uri)
    network_under_test.settle()
    gone = bob.client.get_posts([quote.uri]).posts[0].embed.record
    assert (gone.py_type, gone.uri) == ("app.bsky.embed.record#viewNotFound", post.uri)


def test_a_link_card_and_facets_come_back_as_they_were_written(network_under_test: UnderTest, alice: Person) -> None:
    text = client_utils.TextBuilder().text("é ").mention("@me", alice.did).link(" there", "https://example.com/a")
    card = models.AppBskyEmbedExternal.External(uri="https://example.com/a", title="T", description="D")
    post = alice.post(text, embed=models.AppBskyEmbedExternal.Main(external=card))
    network_under_test.settle()
    [seen] = alice.client.get_posts([post.uri]).posts
    assert (seen.embed.external.uri, seen.embed.external.title) == ("https://example.com/a", "T")
    assert [(f.index.byte_start, f.index.byte_end) for f in seen.record.facets] == [(3, 6), (6, 12)]


def test_an_author_feed_can_leave_things_out(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    theirs = bob.post("theirs")
    own = alice.post("own")
    alice.reply("to own", own)
    alice.reply("to theirs", theirs)
    alice.client.repost(theirs.uri, theirs.cid)
    network_under_test.settle()

    def feed(name: str | None) -> list[str]:
        return texts(bob.client.get_author_feed(alice.handle, filter=name))

    assert feed(None) == ["theirs", "to theirs", "to own", "own"]
    assert feed("posts_with_replies") == feed(None)
    assert feed("posts_no_replies") == ["theirs", "own"]
    assert feed("posts_and_author_threads") == ["theirs", "to own", "own"]
    assert feed("posts_with_media") == []
    newest = bob.client.get_author_feed(alice.handle, limit=1).feed[0]
    assert newest.reason.py_type == f"{DEFS}#reasonRepost"
    assert newest.reason.by.did == alice.did
    reply = bob.client.get_author_feed(alice.handle).feed[1].reply
    assert (reply.root.uri, reply.parent.uri) == (theirs.uri, theirs.uri)


def test_feeds_come_in_pages(network_under_test: UnderTest, alice: Person) -> None:
    for number in range(5):
        alice.post(f"post {number}")
    network_under_test.settle()
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = alice.client.get_author_feed(alice.did, limit=2, cursor=cursor)
        seen += texts(page)
        cursor = page.cursor
    assert seen == ["post 4", "post 3", "post 2", "post 1", "post 0"]
    assert cursor is None


def test_a_timeline_holds_ones_own_posts_and_those_of_whom_one_follows(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    alice.client.follow(bob.did)
    bob.post("from bob")
    carols = carol.post("from carol")
    alice.post("my own")
    bob.client.repost(carols.uri, carols.cid)
    network_under_test.settle()
    assert texts(alice.client.get_timeline()) == ["from carol", "my own", "from bob"]
    assert texts(carol.client.get_timeline()) == ["from carol"]


def test_search_finds_a_phrase_and_authors(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    word = f"zq{alice.handle.partition('.')[0]}"
    alice.post(f"first {word} of all")
    bob.post(f"another {word}")
    network_under_test.settle()

    def found(query: str) -> list[str]:
        return [p.record.text for p in alice.client.app.bsky.feed.search_posts({"q": query}).posts]

    assert found(word) == [f"another {word}", f"first {word} of all"]
    assert found(f"{word} of") == [f"first {word} of all"]
    assert found(f"from:{bob.handle} {word}") == [f"another {word}"]
    assert found(f"{word} nowhere") == []


def test_a_repost_leaves_the_feed_with_its_post(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = bob.post("fleeting")
    made = alice.client.repost(post.uri, post.cid)
    assert made.uri.startswith(f"at://{alice.did}/{REPOST}/")
    bob.delete(post.uri)
    network_under_test.settle()
    assert texts(alice.client.get_author_feed(alice.did)) == []


GATE = "app.bsky.feed.threadgate"
KEY = "3jzfcijpj2z2a"
CREATE = "com.atproto.repo.applyWrites#create"


def gate_record(post_uri: str, *rules: str) -> dict[str, Any]:
    allow = [{"$type": f"{GATE}#{rule}Rule"} for rule in rules]
    return {"$type": GATE, "post": post_uri, "allow": allow, "createdAt": "2026-01-01T00:00:00.000Z"}


def gated_post(network: UnderTest, author: Person, record: dict[str, Any], *rules: str) -> Any:
    """Write a post and who may reply to it in one step; return the answer."""
    uri = f"at://{author.did}/{POST}/{KEY}"
    values = ((POST, record), (GATE, gate_record(uri, *rules)))
    writes = [{"$type": CREATE, "collection": name, "rkey": KEY, "value": value} for name, value in values]
    return network.post(f"{R}applyWrites", {"repo": author.did, "writes": writes}, author.token)


def replies_to(author: Person, uri: str) -> list[str]:
    thread: Any = author.client.get_post_thread(uri).thread
    return [reply.post.record.text for reply in thread.replies or []]


def test_only_those_whom_a_rule_names_can_reply(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    carol = network_under_test.person()
    hello = client_utils.TextBuilder().text("hello ").mention(f"@{bob.handle}", bob.did)
    facets = [facet.model_dump(by_alias=True, exclude_none=True) for facet in hello.build_facets()]
    answer = gated_post(network_under_test, alice, post_record(text=hello.build_text(), facets=facets), "mention")
    post, gate = answer.json()["results"]
    assert (post["validationStatus"], gate["validationStatus"]) == ("valid", "valid")
    network_under_test.settle()
    shown: Any = bob.client.get_posts([post["uri"]]).posts[0]
    assert shown.threadgate.uri == gate["uri"]
    assert not shown.viewer.reply_disabled
    kept_out: Any = carol.client.get_posts([post["uri"]]).posts[0]
    assert kept_out.viewer.reply_disabled
    bob.reply("I was asked", shown)
    carol.reply("I was not", shown)
    network_under_test.settle()
    assert replies_to(alice, post["uri"]) == ["I was asked"]
    assert [one.record.text for one in alice.notifications()] == ["I was asked"]


def test_a_gate_without_rules_lets_nobody_but_the_author_reply(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    bob.client.follow(alice.did)
    post = gated_post(network_under_test, alice, post_record()).json()["results"][0]
    network_under_test.settle()
    shown: Any = bob.client.get_posts([post["uri"]]).posts[0]
    assert shown.viewer.reply_disabled
    alice.reply("to myself", shown)
    bob.reply("to you", shown)
    network_under_test.settle()
    assert replies_to(alice, post["uri"]) == ["to myself"]


def test_the_same_step_again_is_refused_and_changes_nothing(network_under_test: UnderTest, alice: Person) -> None:
    assert gated_post(network_under_test, alice, post_record(), "follower").is_success
    again = gated_post(network_under_test, alice, post_record(), "follower")
    assert (again.status_code, again.json()["error"]) == (500, "InternalServerError")


def test_a_gate_under_another_key_than_its_post_counts_for_nothing(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("open to all")
    body = {"repo": alice.did, "collection": GATE, "rkey": KEY, "record": gate_record(post.uri)}
    assert network_under_test.post(f"{R}putRecord", body, alice.token).is_success
    network_under_test.settle()
    bob.reply("so I can", post)
    network_under_test.settle()
    assert replies_to(alice, post.uri) == ["so I can"]


LABELS = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}


def own(view: Any) -> list[tuple[str, str]]:
    return [(label.val, label.src) for label in view.labels or ()]


def test_a_bot_is_labelled_in_every_view_of_it(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE, "labels": LABELS}}
    network_under_test.post(f"{R}putRecord", body, alice.token).raise_for_status()
    network_under_test.settle()
    post = bob.post("question")
    alice.reply("answer", post)
    alice.client.follow(bob.did)
    network_under_test.settle()
    bot = [("bot", alice.did)]
    assert own(carol.client.get_profile(alice.did)) == bot
    (told,) = bob.notifications(reasons=["reply"])
    assert own(told.author) == bot
    (reply,) = bob.client.get_post_thread(post.uri).thread.replies
    assert own(reply.post.author) == bot
    (line, *_) = carol.client.get_author_feed(alice.did).feed
    assert own(line.post.author) == bot
    (follower,) = carol.client.get_followers(bob.did).followers
    assert own(follower) == bot
    assert own(carol.client.get_post_thread(post.uri).thread.post.author) == []


def test_a_profile_is_replaced_only_as_it_was_read(network_under_test: UnderTest, alice: Person) -> None:
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE}, "swapRecord": None}
    made = network_under_test.post(f"{R}putRecord", body, alice.token).raise_for_status().json()
    changed = {**body, "record": {"$type": PROFILE, "labels": LABELS}}
    stale = network_under_test.post(f"{R}putRecord", changed, alice.token)
    assert (stale.status_code, stale.json()["error"]) == (400, "InvalidSwap")
    fresh = network_under_test.post(f"{R}putRecord", {**changed, "swapRecord": made["cid"]}, alice.token)
    assert fresh.status_code == 200
