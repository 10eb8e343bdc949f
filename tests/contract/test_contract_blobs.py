"""Files: what may be uploaded, what its cid is, and how a post carries it."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest
from atproto import models

from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import POST, R, create, post_record

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
