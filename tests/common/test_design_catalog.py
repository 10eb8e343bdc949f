"""Tests of the design catalogue, the sources that SELF.md adds to it, and what counts as talk of design."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.design_catalog import (
    DESIGN_CATALOG,
    DesignSource,
    get_random_browse_url,
    get_random_design_source,
    read_design_sources,
    speaks_of_design,
)


def test_every_source_and_every_page_of_it_gets_its_turn() -> None:
    rng = random.Random(1)
    assert {get_random_design_source(rng) for _ in range(50)} == set(DESIGN_CATALOG)
    assert get_random_design_source(rng, ()) is None
    site, channel = DESIGN_CATALOG
    assert {get_random_browse_url(site, rng) for _ in range(99)} == set(site.browse_urls)
    assert get_random_browse_url(channel, rng) == channel.url


@pytest.mark.parametrize(
    ("bullet", "name", "url", "kind"),
    [
        ("Tides — https://www.are.na/harbour/tides", "Tides", "https://www.are.na/harbour/tides", "arena"),
        ("Old signs - https://are.na/print/signs.", "Old signs", "https://are.na/print/signs", "arena"),
        ("[Plates](https://plates.example/all)", "Plates", "https://plates.example/all", "web"),
        ("**Maps**: http://maps.example/ (a site)", "Maps", "http://maps.example/", "web"),
        ("https://bare.example/pictures", "bare.example", "https://bare.example/pictures", "web"),
        ("Not Are.na — https://are.na.example/a/b", "Not Are.na", "https://are.na.example/a/b", "web"),
    ],
)
def test_a_source_is_read_as_people_write_it(bullet: str, name: str, url: str, kind: str) -> None:
    (source,) = read_design_sources([bullet])
    assert (source.name, source.url, source.type) == (name, url, kind)


@pytest.mark.parametrize("bullet", ["", "Tides", "https://", "Tides — httpx://a", "ftp://a.example/http", "http://[1"])
def test_a_line_without_an_address_is_no_source(bullet: str) -> None:
    assert read_design_sources([bullet]) == ()


@given(st.lists(st.text()))
def test_reading_never_fails(bullets: list[str]) -> None:
    assert all(isinstance(source, DesignSource) for source in read_design_sources(bullets))


def test_talk_of_design_names_it() -> None:
    talk = [
        "The printed tide table as a piece of design",
        "Which typeface would you set it in?",
        "I like ART.",
        "old UI",
    ]
    assert all(map(speaks_of_design, talk))
    assert not any(
        map(speaks_of_design, ["Designated drivers start early.", "We part as friends.", "It tasted of rain."])
    )
