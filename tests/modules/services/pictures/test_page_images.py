"""The pictures of a page are found as a browser would show them, and nothing on a page takes long to read."""

from __future__ import annotations

import pytest

from modules.services.pictures.choosing import PAGE_MAX_CHARS, find_images
from tests.cpu_time import takes_less
from town.gallery.library import GalleryViews
from town.gallery.pages import exhibition_page

AT = "https://page.example/walls/one"


def urls(page: str, min_width: int = 400) -> list[str]:
    return [image.url for image in find_images(page, AT, min_width=min_width).images]


def test_the_exhibition_of_the_gallery_shows_its_pictures_in_their_largest_size() -> None:
    found = find_images(exhibition_page(GalleryViews("https://gallery.example")), "https://gallery.example/exhibition")
    shown = {image.url.removeprefix("https://gallery.example/pictures/"): image for image in found.images}
    assert list(shown) == [
        "original/lighthouse.jpg",
        "large/threads.png",
        "original/tide-table.png",
        "original/wet-slates.png",
        "original/painted-signs.png",
    ]
    tide = shown["original/tide-table.png"]
    assert (tide.alt, tide.width) == ("Bars of a tide table", 1200)
    assert tide.context == "Two days of tide, half an hour a bar"
    assert shown["original/wet-slates.png"].alt == "Wet slates"
    assert (found.title, found.left_out) == ("Light on surfaces", 4)


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ('<img src="/a.jpg">', ["https://page.example/a.jpg"]),
        ('<![odd]><img src="/a.jpg">', ["https://page.example/a.jpg"]),
        ('<img src="//cdn.example/c.jpg?w=1&amp;h=2">', ["https://cdn.example/c.jpg?w=1&h=2"]),
        ("<IMG DATA-SRC=d.jpg>", ["https://page.example/walls/d.jpg"]),
        ('<div style="background: #fff url(/e.jpg) no-repeat">', ["https://page.example/e.jpg"]),
        ('<img srcset="/s.jpg 1x, /t.jpg 2x" src="/u.jpg">', ["https://page.example/u.jpg"]),
        ('<img src="/narrow.jpg" width="399">', []),
        ('<img src="/flat.jpg" width="900" height="10">', []),
        ('<img src="/a.SVG"><img src="/tracking/1.gif"><img src="/Favicon.png"><img src="/logo-small.png">', []),
        ('<img src="javascript:alert(1)"><img src="file:///etc/passwd"><img src="http://[bad/x.png"><img src="">', []),
        ("<img src='/unfinished.jpg", []),
    ],
)
def test_what_is_a_picture_is_found_and_what_is_none_is_left_out(page: str, found: list[str]) -> None:
    assert urls(page) == found


@pytest.mark.perf
@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<!--",
        "<a ",
        "<a b='",
        "</",
        "&",
        "<figure><figcaption>",
        "<style>",
        "<style>a{background:",
        "<title>",
        '<img srcset="',
        '<img src="/a.jpg">',
        "background:url(",
        '<div style="background:url(/a) background:">',
        "<script>",
    ],
)
def test_no_page_takes_long_to_read(piece: str) -> None:
    page = (piece * (PAGE_MAX_CHARS // len(piece) + 1))[:PAGE_MAX_CHARS]
    assert takes_less(5, lambda: find_images(page, AT), runs=2)
