"""Tests of notifications: who is told of what, once, and how a notification becomes read."""

from datetime import UTC, datetime, timedelta

from atproto import client_utils, models

from tests.contract.people import Person, UnderTest, refusal


def mention(of: Person) -> client_utils.TextBuilder:
    return client_utils.TextBuilder().text("hello ").mention(f"@{of.handle}", of.did)


def quote(post: models.AppBskyFeedPost.CreateRecordResponse) -> models.AppBskyEmbedRecord.Main:
    return models.AppBskyEmbedRecord.Main(record=models.create_strong_ref(post))


def test_each_reason_is_told_with_its_subject(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = alice.post("mine")
    bob.post(mention(alice))
    bob.reply("answer", post)
    bob.post("see", embed=quote(post))
    bob.client.like(post.uri, post.cid)
    bob.client.repost(post.uri, post.cid)
    bob.client.follow(alice.did)
    network_under_test.settle()
    told = alice.notifications()
    assert [n.reason for n in told] == ["follow", "repost", "like", "quote", "reply", "mention"]
    subjects = {n.reason: n.reason_subject for n in told}
    assert subjects == {
        "follow": None,
        "mention": None,
        **dict.fromkeys(("repost", "like", "quote", "reply"), post.uri),
    }
    assert {n.author.did for n in told} == {bob.did}
    answer = next(n for n in told if n.reason == "reply")
    assert (answer.record.text, answer.record.reply.parent.uri) == ("answer", post.uri)


def test_reasons_can_be_asked_for(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = alice.post("mine")
    bob.client.like(post.uri, post.cid)
    bob.reply("answer", post)
    bob.post(mention(alice))
    network_under_test.settle()
    asked = alice.notifications(reasons=["reply", "mention"])
    assert [n.reason for n in asked] == ["mention", "reply"]
    assert alice.notifications(reasons=["no-such-reason"]) == []


def test_one_post_is_told_once_the_mention_before_the_quote_before_the_reply(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("mine")
    bob.post(mention(alice), embed=quote(post))
    reply = models.AppBskyFeedPost.ReplyRef(parent=models.create_strong_ref(post), root=models.create_strong_ref(post))
    bob.post("quote and reply", embed=quote(post), reply_to=reply)
    network_under_test.settle()
    assert [n.reason for n in alice.notifications()] == ["quote", "mention"]


def test_a_reply_is_told_to_the_authors_of_the_four_posts_above(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    root = alice.post("root")
    above = carol.reply("1", root)
    for text in ("2", "3", "4", "5"):
        above = bob.reply(text, above, root)
    network_under_test.settle()
    assert [n.record.text for n in alice.notifications()] == ["4", "3", "2", "1"]
    assert [n.record.text for n in carol.notifications()] == ["5", "4", "3", "2"]
    assert [n.record.text for n in bob.notifications()] == []


def test_nobody_is_told_of_their_own_acts(network_under_test: UnderTest, alice: Person) -> None:
    post = alice.post(mention(alice))
    alice.reply("me again", post)
    alice.client.like(post.uri, post.cid)
    network_under_test.settle()
    assert alice.notifications() == []


def test_what_is_taken_back_is_no_longer_told(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = alice.post("mine")
    like = bob.client.like(post.uri, post.cid)
    reply = bob.reply("answer", post)
    bob.client.follow(alice.did)
    bob.client.unlike(like.uri)
    bob.delete(reply.uri)
    network_under_test.settle()
    assert [n.reason for n in alice.notifications()] == ["follow"]


def test_what_is_about_a_post_that_is_gone_is_not_told(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("mine")
    bob.reply("answer", post)
    bob.client.like(post.uri, post.cid)
    alice.delete(post.uri)
    network_under_test.settle()
    assert alice.notifications() == []


def test_a_second_like_is_not_told(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    post = alice.post("mine")
    bob.client.like(post.uri, post.cid)
    bob.client.like(post.uri, post.cid)
    network_under_test.settle()
    assert len(alice.notifications()) == 1


def test_marking_as_seen_makes_them_read_and_later_ones_not(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("mine")
    bob.reply("before", post)
    network_under_test.settle()
    unread = alice.client.app.bsky.notification.get_unread_count
    assert unread().count == 1
    seen_at = alice.client.get_current_time_iso()
    alice.client.app.bsky.notification.update_seen({"seen_at": seen_at})
    network_under_test.settle()
    assert unread().count == 0
    bob.reply("after", post)
    network_under_test.settle()
    assert [(n.record.text, n.is_read) for n in alice.notifications()] == [("after", False), ("before", True)]
    assert unread().count == 1
    told = alice.client.app.bsky.notification.list_notifications()
    assert told.seen_at[:23] == seen_at[:23]


def test_before_the_first_marking_only_the_newest_is_shown_as_unread(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    post = alice.post("mine")
    for text in ("one", "two", "three"):
        bob.reply(text, post)
    listed = alice.client.app.bsky.notification.list_notifications
    assert [(n.record.text, n.is_read) for n in alice.notifications()] == [
        ("three", False),
        ("two", True),
        ("one", True),
    ]
    assert listed().seen_at == listed().notifications[0].indexed_at
    later = listed({"cursor": listed({"limit": 1}).cursor})
    assert ([n.is_read for n in later.notifications], later.seen_at) == ([True, True], None)
    assert alice.client.app.bsky.notification.get_unread_count().count == 3


def test_seeing_never_goes_back(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    bob.client.follow(alice.did)
    network_under_test.settle()
    now = datetime.now(UTC)
    for moment in (now + timedelta(seconds=1), now - timedelta(days=1)):
        alice.client.app.bsky.notification.update_seen({"seen_at": moment.isoformat()})
        network_under_test.settle()
    assert alice.client.app.bsky.notification.get_unread_count().count == 0


def test_notifications_come_in_pages(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    for number in range(5):
        bob.post(client_utils.TextBuilder().mention("@you", alice.did).text(f" {number}"))
    network_under_test.settle()
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = alice.client.app.bsky.notification.list_notifications({"limit": 2, "cursor": cursor})
        seen += [n.record.text for n in page.notifications]
        cursor = page.cursor
    assert seen == [f"@you {number}" for number in (4, 3, 2, 1, 0)]
    assert cursor is None


def test_a_time_that_is_none_is_refused(network_under_test: UnderTest, somebody: Person) -> None:
    nsid = "app.bsky.notification.updateSeen"
    problem = refusal(network_under_test.post(nsid, {"seenAt": "zz"}, somebody.token))
    assert problem == (400, "InvalidRequest", 'Invalid datetime (got "zz") at $.seenAt')
    missing = refusal(network_under_test.post(nsid, {}, somebody.token))
    assert missing == (400, "InvalidRequest", 'Missing required key "seenAt" at $')
