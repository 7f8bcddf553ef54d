"""Feeds and sitemaps as they are on the web: damaged, in any encoding, hostile."""

from __future__ import annotations

import gzip
import math
import time
import tracemalloc

import pytest

from policies.live.adapters import listings
from policies.live.adapters.listings import Listing, listed

AT = "https://a.example/dir/f.xml"
URLS = [f"https://a.example/{k}" for k in range(4)]
SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
HEAD = f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{SPACE}">'
GOOD = "".join(f"<url><loc>{url}</loc></url>" for url in URLS)
WHOLE = f"{HEAD}{GOOD}</urlset>"


def urls_of(listing: Listing) -> list[str]:
    return [entry.url for entry in listing.entries]


@pytest.mark.parametrize(
    ("entry", "url", "fault"),
    [
        ("<url><loc>/?a=1&b=2&copy=3</loc></url>", "/?a=1&b=2&copy=3", ""),
        ("<url><loc>/?a=1&amp;b=&#50;&#x33;</loc></url>", "/?a=1&b=23", ""),
        ("<url><loc>/&eacute;&nbsp;</loc></url>", "/\xe9", ""),
        ("<url><loc>\n <![CDATA[ /?a=1&b=2 ]]>\n</loc></url>", "/?a=1&b=2", ""),
        ("<url><loc>/x</loc><v:video><v:loc>/y</v:loc></v:video></url>", "/x", ""),
        ("<url><loc>/x</loc><x:link rel='alternate' href='/de'/></url>", "/x", ""),
        ("<url><loc>/x</url>", "/x", "tag mismatch"),
        ("<url><loc>/x</loc>", "/x", "tag mismatch"),
        ("<url><loc>/x</loc><a b='c' b='d'>x</a></url>", "/x", "Attribute b redefined"),
        ("<URL><LOC>/x</LOC></URL>", "/x", ""),
        ("<url><loc>/\x08x</loc></url>", None, "without a URL of a page (1, as '/\\x7fx')"),
        ("<url><loc>/&#0;&unknown;x</loc></url>", None, "without a URL"),
        ("<url><loc></loc></url>", None, "without a URL"),
        ("<url><loc>mailto:x</loc></url>", None, "without a URL"),
        ("<url><loc>http://a.example:99999/</loc></url>", None, "without a URL"),
        (f"<url><loc>/{3000 * 'x'}</loc></url>", None, "without a URL"),
        ("<url><loc>/x</loc><lastmod>soon</lastmod></url>", "/x", "known form (1, as 'soon')"),
    ],
)
def test_a_damaged_entry_costs_no_other(entry: str, url: str | None, fault: str) -> None:
    for text in (HEAD + entry + GOOD, HEAD + GOOD + entry):
        found = listed(f"{text}</urlset>".encode(), AT)
        expected = {*URLS, *(["https://a.example" + url] if url else [])}
        assert set(urls_of(found)) == expected
        assert [fault in each for each in found.faults] == [True] * bool(fault), found.faults


def test_files_are_read_as_far_as_they_go() -> None:
    for end in ("", "<url><loc>/x", "1 < 2</urlset>", "<a b='" + GOOD, f"<a {70_000 * 'b'}>{GOOD}"):
        found = listed((HEAD + GOOD + end).encode(), AT)
        assert urls_of(found) == URLS
        assert "is damaged, and read as far as it goes: " in found.faults[0]
    cut = gzip.compress(WHOLE.encode())[:-8] + b"\0"
    assert "its gzip: " in listed(cut, AT).faults[0]


def test_encodings_are_those_that_are_marked_or_declared() -> None:
    text, url = HEAD + "<url><loc>/\xe9</loc></url></urlset>", ["https://a.example/\xe9"]
    for name in ("utf-16", "utf-8-sig"):
        assert urls_of(listed(text.encode(name), AT)) == url
    for name in ("latin-1", "windows-1252", "UTF-16", "foo-8"):  # whatever is declared
        assert urls_of(listed(text.replace("UTF-8", name).encode(), AT)) == url
    assert urls_of(listed(text.replace("UTF-8", "iso-8859-1").encode("latin-1"), AT)) == url
    declared = text.replace("UTF-8", "big5").replace("\xe9", "\u4e2d").encode("big5")
    assert urls_of(listed(declared, AT)) == ["https://a.example/\u4e2d"]
    found = listed(text.replace("</urlset>", GOOD).encode("latin-1") + b"</urlset>", AT)
    assert urls_of(found) == URLS  # it is a guess what a byte means that is not of UTF-8
    assert "as '/\ufffd'" in found.faults[0]


def test_sitemaps_of_text_have_a_url_a_line() -> None:
    lines = [*URLS, "https://a.example/\xe9?a=1&b=2"]
    for end in ("\n", "\r\n", "\r", "\n\n \n"):
        for name in ("utf-8", "utf-8-sig", "utf-16"):
            found = listed(end.join(lines).encode(name), AT)
            assert (found.kind, urls_of(found), found.faults) == ("sitemap", lines, [])
    found = listed("\n".join([*URLS, "no url"]).encode(), AT)
    assert urls_of(found) == URLS
    assert "(1, as 'no url')" in found.faults[0]


def test_members_of_gzip_are_one_file() -> None:
    whole = WHOLE.encode()
    body = gzip.compress(whole[:99]) + gzip.compress(whole[99:])
    for end in (b"", b"trailing"):
        found = listed(body + end, AT)
        assert (urls_of(found), len(found.faults)) == (URLS, bool(end))


@pytest.mark.parametrize(
    ("date", "day", "exact"),
    [
        ("2026-11", 20758.0, False),
        ("2026", 20454.0, False),
        ("2026-11-05T10:00:00-0330", 20762.5625, True),
        ("20261105T120000Z", 20762.5, False),
        ("Tuesday, 02-Jan-24 12:00:00 GMT", 19724.5, True),
        ("Tue, 02 Jan 2024 07:00:00 EST", 19724.5, True),
        ("Tue, 45 Jan 2024 13:00:00 GMT", math.nan, True),
    ],
)
def test_dates_are_read_in_their_common_forms(date: str, day: float, exact: bool) -> None:
    text = f"<rss><item><link>/1</link><pubDate>{date}</pubDate></item></rss>"
    [entry] = listed(text.encode(), AT).entries
    assert entry.day == pytest.approx(day, nan_ok=True)
    assert entry.exact == exact


ATOM = "http://www.w3.org/2005/Atom"


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("<rss><item><guid>g</guid><link>2?a=1&amp;b=2</link></item></rss>", ["/dir/2?a=1&b=2"]),
        ("<rss><item><guid>/3</guid></item></rss>", ["/3"]),
        ("<rss><item><guid isPermaLink='false'>/3</guid></item></rss>", []),
        ("<rss xml:base='/b/'><item><link>1</link></item></rss>", ["/b/1"]),
        (f"<a:feed xmlns:a='{ATOM}'><a:entry><a:link href='1'/></a:entry></a:feed>", ["/dir/1"]),
        (f"<rss xmlns:k='{ATOM}'><item><k:link href='/1'/></item></rss>", ["/1"]),
        ("<rss xmlns:k='urn:k'><item><link>/1</link><k:link href='/2'/></item></rss>", ["/1"]),
        ("<r:RDF xmlns:r='r'><channel/><item><link>/1</link></item></r:RDF>", ["/1"]),
        (
            "<feed xml:base='/b/'><entry xml:base='c/'><link rel='self' href='s'/><link href='1'/>"
            "<link rel='enclosure' href='e'/><link type='application/json' href='j'/>"
            "<source><link href='/s'/></source></entry></feed>",
            ["/b/c/1"],
        ),
        ("<rss><item><d><![CDATA[<item><link>/2</link>]]></d><link>/1</link></item></rss>", ["/1"]),
        ("<!-- <feed> --><rss><!-- <item> --><item><link>/1</link></item></rss>", ["/1"]),
    ],
)
def test_links_of_feeds_are_those_of_their_pages(text: str, urls: list[str]) -> None:
    assert urls_of(listed(text.encode(), AT)) == [f"https://a.example{url}" for url in urls]


def test_the_date_of_a_change_counts_before_that_of_the_publication() -> None:
    dates = "<pubDate>Tue, 02 Jan 2024 12:00 GMT</pubDate><x:date>2024-01-03T12:00Z</x:date>"
    text = f"<rss><item><link>/1</link>{dates}</item></rss>"
    assert listed(text.encode(), AT).entries[0].day == pytest.approx(19725.5)


def test_entities_are_not_expanded_and_no_file_is_read() -> None:
    declared = '<!ENTITY a "lol"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/hostname">'
    for name in "bc":
        text = f"<!DOCTYPE x [{declared}]><urlset><url><loc>/&{name};</loc></url>{GOOD}</urlset>"
        found = listed(text.encode(), AT)
        assert urls_of(found) == URLS
        assert f"as '/&{name};'" in found.faults[0]


N = 300_000
HOSTILE = {
    "tags without an end": b"<rss>" + N * b"<item ",
    "entries without an end": b"<rss>" + N * b"<item>",
    "depth": b"<rss><item>" + N * b"<a>" + N * b"</b>",
    "attributes": b"<feed><entry><link " + N * b"a='' " + b"/></entry></feed>",
    "an attribute": b"<feed><entry><link href='" + 10 * N * b"x" + b"'/></entry></feed>",
    "a section": b"<rss><item><link><![CDATA[" + 10 * N * b"x" + b"]]></link></item></rss>",
    "sections": b"<rss><item><link>" + N * b"<![CDATA[",
    "parts": b"<rss><item>" + N * b"<link>x",
    "comments": b"<rss>" + N * b"<!--",
    "quotes": b"<rss>" + N * b"<a b='",
    "escapes": b"<rss><item><link>" + N * b"&amp;",
    "bytes": b"<urlset>" + 10 * N * b"\xff",
    "bases": b"<feed xml:base='/" + 900 * b"x/" + b"'>" + 9000 * b"<entry><link href='x'/></entry>",
    "dates": b"<feed>" + 9000 * b"<entry><updated>1 2 3 4 5</updated><published>-</published>",
    "entities": b"<!DOCTYPE x [" + N * b"<!ENTITY e 'x'>" + b"]><rss/>",
    "a codec": b"<?xml version='1.0' encoding='punycode'?><urlset>\xff" + 10 * N * b"a",
    "lines": b"https://a.example/1\n" + 10 * N * b"\n",
    "members": N * gzip.compress(b""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_take_time_in_proportion(name: str) -> None:
    begun = time.process_time()
    assert len(listed(HOSTILE[name], AT).entries) <= 1
    assert time.process_time() - begun < 10.0  # less than .5 s alone, and minutes if quadratic


def test_elements_have_a_bound_and_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc.start()
    listed(b"<rss><item>" + 60_000 * b"<link>x</link>" + b"</item></rss>", AT)
    assert tracemalloc.get_traced_memory()[1] < 4 * 2**20  # of 840 kB
    tracemalloc.stop()
    monkeypatch.setattr(listings, "MAX_ELEMENTS", 9)
    found = listed(WHOLE.encode(), AT)
    assert (urls_of(found), found.faults) == (URLS, [])  # a root, four entries, four links
    found = listed(WHOLE.replace("<loc>", "<a/><loc>").encode(), AT)
    assert urls_of(found) == URLS[:2]
    assert "more than 50000 entries or 9 elements" in found.faults[0]
