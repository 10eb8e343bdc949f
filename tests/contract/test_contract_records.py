"""Tests of records: keys, content addresses, what may be written, where, and in which words it is refused.

Tests of files: what may be uploaded, what its CID is, and how a post carries it. Tests of what a record must look
like, and in which words another is refused.
"""

import base64
from typing import Any

import httpx
import pytest
from atproto import models

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import CID, CREATE, FOLLOW, LIKE, NOW, POST, PROFILE, TID, R, create, post_record, put

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}\N{ZERO WIDTH JOINER}\N{BOY}"


@pytest.mark.parametrize(
    ("record", "cid"),
    [
        (post_record(), "bafyreickhlxph5tvlpn7k4ki6jws3egiktxrybpgofqeyhkfayrj2ewsoi"),
        (post_record(text="x" * 300), "bafyreibpiz6zvxuelq4y6yydkvz5rdvqdxpivisvpldhtqsnh6hy6diale"),
        (post_record(zzz=1), "bafyreifm3krhlplrrxgs7hfaia2aamdhqn4s3dbqf77wqqicitwik3vo5m"),
        (post_record(text=FAMILY * 119), "bafyreidsjdbzl5zabinuml5gkw2q47vlqjzomltbqk657eefri43jhmwiq"),
    ],
    ids=["plain", "long", "unknown field", "joined emoji"],
)
def test_a_record_has_the_same_cid_everywhere(
    network_under_test: UnderTest, somebody: Person, record: dict[str, Any], cid: str
) -> None:
    made = create(network_under_test, somebody, record).json()
    assert (made["cid"], made["validationStatus"]) == (cid, "valid")
    assert made["uri"].startswith(f"at://{somebody.did}/{POST}/3")


def test_shapes_that_nobody_knows_are_kept_unchecked(network_under_test: UnderTest, alice: Person) -> None:
    unknown = create(network_under_test, alice, {"x": 1}, "com.example.thing").json()
    assert unknown["validationStatus"] == "unknown"
    unchecked = create(network_under_test, alice, post_record(text="x" * 301), validate=False).json()
    assert "validationStatus" not in unchecked
    open_ended = post_record(embed={"$type": "com.example.embed", "x": 1})
    assert create(network_under_test, alice, open_ended).json()["validationStatus"] == "valid"


@pytest.mark.parametrize(
    ("repo", "expected"),
    [
        ("bob", (401, "AuthenticationRequired", "Authentication Required")),
        ("x x", (400, "InvalidRequest", 'Invalid AT identifier (got "x x") at $.repo')),
    ],
)
def test_only_ones_own_repository_can_be_written(
    network_under_test: UnderTest, somebody: Person, bob: Person, repo: str, expected: tuple[int, str, str]
) -> None:
    theirs = {"bob": bob.did}.get(repo, repo)
    body = {"repo": theirs, "collection": POST, "record": post_record()}
    assert refusal(network_under_test.post(CREATE, body, somebody.token)) == expected
    body = {"repo": theirs, "collection": POST, "rkey": TID}
    assert refusal(network_under_test.post(f"{R}deleteRecord", body, somebody.token)) == expected


def test_ones_own_repository_may_be_named_by_handle(network_under_test: UnderTest, alice: Person) -> None:
    body = {"repo": alice.handle, "collection": POST, "record": post_record()}
    made = network_under_test.post(CREATE, body, alice.token).json()
    assert made["uri"].startswith(f"at://{alice.did}/")


def test_writing_needs_a_session(network_under_test: UnderTest, somebody: Person) -> None:
    body = {"repo": somebody.did, "collection": POST, "record": post_record()}
    missing = (401, "AuthMissing", "Authentication Required")
    assert refusal(network_under_test.post(CREATE, body)) == missing
    assert refusal(network_under_test.post(f"{R}putRecord", {**body, "rkey": TID})) == missing


def test_creating_under_a_taken_key_is_a_bare_500(network_under_test: UnderTest, alice: Person) -> None:
    assert create(network_under_test, alice, post_record(), rkey=TID).status_code == 200
    answer = create(network_under_test, alice, post_record(text="other"), rkey=TID)
    assert refusal(answer) == (500, "InternalServerError", "Internal Server Error")


def test_putting_the_same_record_again_changes_nothing(network_under_test: UnderTest, alice: Person) -> None:
    first = put(network_under_test, alice, post_record(text="a")).json()
    again = put(network_under_test, alice, post_record(text="a")).json()
    assert (again["uri"], again["cid"]) == (first["uri"], first["cid"])
    changed = put(network_under_test, alice, post_record(text="b")).json()
    assert changed["uri"] == first["uri"]
    assert changed["cid"] != first["cid"]
    assert len(alice.client.app.bsky.feed.post.list(alice.did).records) == 1


def test_a_swap_needs_the_record_that_stands(network_under_test: UnderTest, alice: Person) -> None:
    first = put(network_under_test, alice, post_record(text="a"), swapRecord=None).json()
    refused = refusal(put(network_under_test, alice, post_record(text="b"), swapRecord=None))
    assert refused == (400, "InvalidSwap", f"Record was at {first['cid']}")
    assert put(network_under_test, alice, post_record(text="b"), swapRecord=first["cid"]).status_code == 200
    assert put(network_under_test, alice, post_record(text="b"), swapRecord=CID).status_code == 200


def test_a_record_is_read_by_handle_or_did_or_not_found(network_under_test: UnderTest, alice: Person) -> None:
    made = create(network_under_test, alice, post_record(), rkey=TID).json()
    place = {"collection": POST, "rkey": TID}
    for repo in (alice.did, alice.handle):
        found = network_under_test.get(f"{R}getRecord", repo=repo, **place).json()
        assert found == {"uri": made["uri"], "cid": made["cid"], "value": post_record()}
    gone = refusal(network_under_test.get(f"{R}getRecord", repo=alice.did, collection=POST, rkey="nope"))
    uri = f"at://{alice.did}/{POST}/nope"
    assert gone == (400, "RecordNotFound", f"Could not locate record: {uri}")
    stranger = refusal(network_under_test.get(f"{R}getRecord", repo="nobody-here.test", **place))
    assert stranger == (400, "InvalidRequest", "Could not find repo: nobody-here.test")
    other = refusal(network_under_test.get(f"{R}getRecord", repo=alice.did, cid=CID, **place))
    assert other[1] == "RecordNotFound"


def test_records_are_listed_from_the_last_key_and_by_pages(network_under_test: UnderTest, alice: Person) -> None:
    keys = [f"3kabcdefghi{letter}2" for letter in "abcde"]
    for key in keys:
        put(network_under_test, alice, post_record(), key)

    def listed(**params: Any) -> tuple[list[str], str | None]:
        page = network_under_test.get(f"{R}listRecords", repo=alice.did, collection=POST, **params).json()
        return [record["uri"].rsplit("/", 1)[1] for record in page["records"]], page.get("cursor")

    assert listed(limit=2) == ([keys[4], keys[3]], keys[3])
    assert listed(limit=2, cursor=keys[3]) == ([keys[2], keys[1]], keys[1])
    assert listed(limit=2, cursor=keys[1]) == ([keys[0]], keys[0])
    assert listed(cursor=keys[0]) == ([], None)
    assert listed(limit=2, reverse="true") == ([keys[0], keys[1]], keys[1])
    assert listed(limit=2, reverse="true", cursor=keys[3]) == ([keys[4]], keys[4])


@pytest.mark.parametrize(
    ("limit", "problem"), [(0, "integer too small (minimum 1, got 0)"), (101, "integer too big (maximum 100, got 101)")]
)
def test_a_limit_out_of_bounds_is_refused(
    network_under_test: UnderTest, somebody: Person, limit: object, problem: str
) -> None:
    answer = network_under_test.get(f"{R}listRecords", repo=somebody.did, collection=POST, limit=limit)
    assert refusal(answer) == (400, "InvalidRequest", f"Invalid {R}listRecords params: {problem}")


def test_deleting_what_is_gone_is_no_error(network_under_test: UnderTest, alice: Person) -> None:
    made = alice.post("short-lived")
    assert alice.client.delete_post(made.uri)
    assert alice.client.delete_post(made.uri)
    assert alice.client.app.bsky.feed.post.list(alice.did).records == {}


def test_a_repository_describes_itself(network_under_test: UnderTest, alice: Person) -> None:
    alice.post("one")
    told = alice.client.com.atproto.repo.describe_repo({"repo": alice.handle})
    assert (told.did, told.handle, told.collections, told.handle_is_correct) == (alice.did, alice.handle, [POST], True)
    unknown = refusal(network_under_test.get(f"{R}describeRepo", repo="nobody-here.test"))
    assert unknown == (400, "RepoNotFound", "Could not find repo for DID: nobody-here.test")


W = "com.atproto.repo.applyWrites"


def apply(network: UnderTest, author: Person, *writes: dict[str, Any]) -> Any:
    return network.post(W, {"repo": author.did, "writes": list(writes)}, author.token)


def test_many_writes_are_applied_in_order(network_under_test: UnderTest, alice: Person) -> None:
    put(network_under_test, alice, post_record())
    results = apply(
        network_under_test,
        alice,
        {"$type": f"{W}#create", "collection": POST, "rkey": "3kabcdefghik2", "value": post_record()},
        {"$type": f"{W}#create", "collection": POST, "value": post_record(text="fresh key")},
        {"$type": f"{W}#update", "collection": POST, "rkey": TID, "value": post_record(text="new")},
        {"$type": f"{W}#delete", "collection": POST, "rkey": "3kabcdefghik2"},
    ).json()["results"]
    kinds = [result["$type"].partition("#")[2] for result in results]
    assert kinds == ["createResult", "createResult", "updateResult", "deleteResult"]
    listed = network_under_test.get(f"{R}listRecords", repo=alice.did, collection=POST).json()["records"]
    texts = {record["value"]["text"] for record in listed}
    assert texts == {"fresh key", "new"}


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        ({"$type": f"{W}#delete", "collection": POST, "rkey": TID}, (500, "InternalServerError")),
        (
            {"$type": f"{W}#update", "collection": POST, "rkey": TID, "value": post_record()},
            (500, "InternalServerError"),
        ),
        ({"$type": f"{W}#create", "collection": POST}, (400, "InvalidRequest")),
        ({"$type": f"{W}#create", "collection": POST, "value": post_record(text="x" * 301)}, (400, "InvalidRequest")),
    ],
)
def test_if_one_of_many_writes_fails_none_is_applied(
    network_under_test: UnderTest, alice: Person, write: dict[str, Any], expected: tuple[int, str]
) -> None:
    fine = {"$type": f"{W}#create", "collection": POST, "value": post_record()}
    assert refusal(apply(network_under_test, alice, fine, write))[:2] == expected
    assert alice.client.app.bsky.feed.post.list(alice.did).records == {}


def test_no_more_than_200_writes_at_once(network_under_test: UnderTest, somebody: Person) -> None:
    write = {"$type": f"{W}#create", "collection": POST, "value": post_record()}
    answer = refusal(apply(network_under_test, somebody, *[write] * 201))
    assert answer == (400, "InvalidRequest", "Too many writes. Max: 200")
    assert apply(network_under_test, somebody).json()["results"] == []


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_CID = "bafkreidlp6sdj6jkroakvmbntpy2clsj77foijheae5byt3iwz7d2k542a"
UNKNOWN = "bafkreibjfgx2gprinfvicegelk5kosd6y2frmqpqzwqkg7usac74l3t2v4"
SDK_UPLOADS_THE_OLD_WAY = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


def upload(network: UnderTest, person: Person, content: bytes, mime: str | None = "image/png") -> httpx.Response:
    headers = {"content-type": mime} if mime else {}
    return network.post(f"{R}uploadBlob", token=person.token, content=content, headers=headers)


def picture(blob: dict[str, Any], **changes: Any) -> dict[str, Any]:
    image = {"alt": "x", "image": {**blob, **changes}}
    return post_record(embed={"$type": "app.bsky.embed.images", "images": [image]})


@pytest.mark.parametrize("mime", ["image/png", "text/plain", "*/*"])
def test_a_picture_is_known_by_its_content(network_under_test: UnderTest, somebody: Person, mime: str) -> None:
    blob = upload(network_under_test, somebody, PNG, mime).json()["blob"]
    assert blob == {"$type": "blob", "ref": {"$link": PNG_CID}, "mimeType": "image/png", "size": len(PNG)}


def test_another_file_is_what_it_says(network_under_test: UnderTest, somebody: Person) -> None:
    blob = upload(network_under_test, somebody, b"hello", "text/plain").json()["blob"]
    assert (blob["mimeType"], blob["ref"]["$link"]) == (
        "text/plain",
        "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq",
    )


def test_an_upload_that_cannot_be_is_refused(network_under_test: UnderTest, somebody: Person) -> None:
    nameless = refusal(upload(network_under_test, somebody, PNG, None))
    assert nameless == (400, "InvalidRequest", "Request encoding (Content-Type) required but not provided")
    large = refusal(upload(network_under_test, somebody, b"x" * (5 * 1024 * 1024 + 1)))
    assert large == (413, "PayloadTooLarge", "request entity too large")
    anonymous = network_under_test.post(f"{R}uploadBlob", content=PNG, headers={"content-type": "image/png"})
    assert refusal(anonymous)[1] == "AuthMissing"


@SDK_UPLOADS_THE_OLD_WAY
def test_the_sdk_posts_a_picture_and_reads_it_back(network_under_test: UnderTest, alice: Person) -> None:
    ratio = models.AppBskyEmbedDefs.AspectRatio(width=1, height=1)
    post = alice.client.send_image("look", PNG, "a dot", image_aspect_ratio=ratio)
    network_under_test.settle()
    [seen] = alice.client.get_posts([post.uri]).posts
    [image] = seen.embed.images
    assert (image.alt, image.aspect_ratio.width) == ("a dot", 1)
    assert image.thumb.startswith("http://")
    assert f"/{alice.did}/{PNG_CID}" in image.thumb
    shown = httpx.get(image.fullsize)
    assert (shown.status_code, shown.headers["content-type"].partition("/")[0]) == (200, "image")
    assert httpx.get(image.fullsize.replace(PNG_CID, UNKNOWN)).status_code == 404
    [line] = alice.client.get_author_feed(alice.did, filter="posts_with_media").feed
    assert line.post.uri == post.uri
    found = network_under_test.get("com.atproto.sync.getBlob", did=alice.did, cid=PNG_CID)
    assert (found.content, found.headers["content-type"]) == (PNG, "image/png")


def test_equal_picture_posts_have_the_same_cid_everywhere(network_under_test: UnderTest, alice: Person) -> None:
    blob = upload(network_under_test, alice, PNG).json()["blob"]
    made = create(network_under_test, alice, picture(blob)).json()
    assert made["cid"] == "bafyreiejgmn7zjdtlbymy6mlvqgyty3dk72dgt2vqnvkdhn3qwiynpar6i"


@SDK_UPLOADS_THE_OLD_WAY
def test_a_picture_with_a_quote_shows_both(network_under_test: UnderTest, alice: Person) -> None:
    quoted = alice.post("quoted")
    blob = alice.client.upload_blob(PNG).blob
    media = models.AppBskyEmbedImages.Main(images=[models.AppBskyEmbedImages.Image(alt="a dot", image=blob)])
    record = models.AppBskyEmbedRecord.Main(record=models.create_strong_ref(quoted))
    post = alice.post("both", embed=models.AppBskyEmbedRecordWithMedia.Main(record=record, media=media))
    network_under_test.settle()
    embed = alice.client.get_posts([post.uri]).posts[0].embed
    assert embed.py_type == "app.bsky.embed.recordWithMedia#view"
    assert (embed.record.record.uri, embed.media.images[0].alt) == (quoted.uri, "a dot")


@pytest.mark.parametrize(
    ("changes", "name", "problem"),
    [
        (
            {"mimeType": "text/plain"},
            "InvalidRequest",
            f'Invalid {POST} record: Expected "image/*" (got "text/plain") at $.record.embed.images[0].image.mimeType',
        ),
        (
            {"size": 2_000_001},
            "InvalidRequest",
            f"Invalid {POST} record: blob too big (maximum 2000000, got 2000001) at $.record.embed.images[0].image",
        ),
        ({"ref": {"$link": UNKNOWN}}, "BlobNotFound", f"Could not find blob: {UNKNOWN}"),
        ({"size": 1}, "InvalidSize", f"Referenced Size does not match stored blob. Expected: {len(PNG)}, Got: 1"),
    ],
)
def test_a_post_cannot_carry_any_file(
    network_under_test: UnderTest, somebody: Person, changes: dict[str, Any], name: str, problem: str
) -> None:
    blob = upload(network_under_test, somebody, PNG).json()["blob"]
    answer = refusal(create(network_under_test, somebody, picture(blob, **changes)))
    assert answer == (400, name, problem)


def test_a_post_carries_four_pictures_at_most(network_under_test: UnderTest, somebody: Person) -> None:
    blob = upload(network_under_test, somebody, PNG).json()["blob"]
    images = [{"alt": "", "image": blob}] * 5
    record = post_record(embed={"$type": "app.bsky.embed.images", "images": images})
    answer = refusal(create(network_under_test, somebody, record))
    assert answer[2] == f"Invalid {POST} record: array too big (maximum 4, got 5) at $.record.embed.images"


def test_a_file_that_is_not_there_is_refused(network_under_test: UnderTest, somebody: Person) -> None:
    nsid, get = "com.atproto.sync.getBlob", network_under_test.get
    assert refusal(get(nsid, did=somebody.did, cid=UNKNOWN)) == (400, "InvalidRequest", "Blob not found")
    stranger = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
    nowhere = refusal(get(nsid, did=stranger, cid=UNKNOWN))
    assert nowhere == (400, "RepoNotFound", f"Could not find repo for DID: {stranger}")


SOME_POST = {"uri": f"at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/{POST}/{TID}", "cid": CID}
KINDS = "one of null, boolean, integer, string, cid, bytes, array or object"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"text": "x" * 301}, "grapheme too big (maximum 300, got 301) at $.record.text"),
        ({"text": 5}, "Expected string value type (got 5) at $.record.text"),
        ({"text": None}, 'Missing required key "text" at $.record'),
        ({"createdAt": "yesterday"}, 'Invalid datetime (got "yesterday") at $.record.createdAt'),
        ({"langs": ["xx yy"]}, 'Invalid language (got "xx yy") at $.record.langs[0]'),
        ({"reply": {"parent": SOME_POST}}, 'Missing required key "root" at $.record.reply'),
        (
            {"reply": {"root": SOME_POST, "parent": {**SOME_POST, "uri": "zz"}}},
            'Invalid at-uri (got "zz") at $.record.reply.parent.uri',
        ),
        (
            {"facets": [{"index": {"byteStart": 0}, "features": []}]},
            'Missing required key "byteEnd" at $.record.facets[0].index',
        ),
        (
            {
                "facets": [
                    {
                        "index": {"byteStart": 0, "byteEnd": 2},
                        "features": [{"$type": "app.bsky.richtext.facet#mention", "did": "nope"}],
                    }
                ]
            },
            'Invalid DID (got "nope") at $.record.facets[0].features[0].did',
        ),
        (
            {"embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "x"}]}},
            'Missing required key "image" at $.record.embed.images[0]',
        ),
        (
            {"embed": {"$type": "app.bsky.embed.external", "external": {"uri": "https://a.b", "title": "t"}}},
            'Missing required key "description" at $.record.embed.external',
        ),
        (
            {"embed": {"x": 1}},
            'Expected an object which includes the "$type" property value type (got {"x": ...}) at $.record.embed',
        ),
    ],
)
def test_a_post_that_does_not_fit_is_refused(
    network_under_test: UnderTest, somebody: Person, fields: dict[str, Any], problem: str
) -> None:
    answer = refusal(create(network_under_test, somebody, post_record(**fields)))
    assert answer == (400, "InvalidRequest", f"Invalid {POST} record: {problem}")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"collection": LIKE, "record": {}}, f'Invalid {LIKE} record: Missing required key "subject" at $.record'),
        (
            {"collection": FOLLOW, "record": {"subject": "nodid"}},
            f'Invalid {FOLLOW} record: Invalid DID (got "nodid") at $.record.subject',
        ),
        (
            {"collection": PROFILE, "rkey": "self", "record": {"displayName": "x" * 65}},
            f"Invalid {PROFILE} record: grapheme too big (maximum 64, got 65) at $.record.displayName",
        ),
        (
            {"collection": PROFILE, "rkey": TID, "record": {}},
            f'Invalid record key for {PROFILE}: Expected "self" (got "{TID}") at $',
        ),
        (
            {"collection": POST, "rkey": "custom", "record": {"text": "x"}},
            f'Invalid record key for {POST}: Invalid TID string (got "custom") at $',
        ),
        (
            {"collection": POST, "rkey": "bad/key", "record": {"text": "x"}},
            'Invalid record key (got "bad/key") at $.rkey',
        ),
        (
            {"collection": "com.example.thing", "validate": True, "record": {}},
            "Unknown lexicon type: com.example.thing",
        ),
        ({"collection": "not an nsid", "record": {}}, 'Invalid NSID (got "not an nsid") at $.collection'),
    ],
)
def test_a_record_in_the_wrong_place_or_shape_is_refused(
    network_under_test: UnderTest, somebody: Person, body: dict[str, Any], problem: str
) -> None:
    record = {"createdAt": NOW, **body["record"]}
    answer = network_under_test.post(CREATE, {"repo": somebody.did, **body, "record": record}, somebody.token)
    assert refusal(answer) == (400, "InvalidRequest", problem)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("text", 'Expected object value type (got "text") at $.record'),
        (None, "Expected object value type (got null) at $.record"),
        (post_record(zzz=1.5), f"Expected {KINDS} value type (got 1.5) at $.record.zzz"),
    ],
)
def test_what_is_no_record_is_refused(
    network_under_test: UnderTest, somebody: Person, record: Any, problem: str
) -> None:
    assert refusal(create(network_under_test, somebody, record)) == (400, "InvalidRequest", problem)
