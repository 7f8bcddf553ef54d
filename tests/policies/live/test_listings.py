"""Feeds and sitemaps as they are on the web: damaged, in any encoding, hostile."""

from __future__ import annotations

import gzip
import math
import time
import tracemalloc

import pytest

from policies.live import markup
from policies.live.listings import Listing, listed

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
        ("<url><loc>/?a=1&b=2&copy=3</loc></url>", "/?a=1&b=2&copy=3", "& that is not escaped"),
        ("<url><loc>/&eacute;&nbsp;</loc></url>", "/\xe9", ""),
        ("<url><loc>\n <![CDATA[ /?a=1&b=2 ]]>\n</loc></url>", "/?a=1&b=2", ""),
        ("<url><loc>/x</loc><v:video><v:loc>/y</v:loc></v:video></url>", "/x", ""),
        ("<url><v:loc>/y</v:loc><loc>/x</loc></url>", "/x", ""),
        ("<url><loc>/x</url>", "/x", ""),
        ("<url><loc>/x<priority>1</priority></url>", "/x", ""),
        ("<url><loc>/x</loc>", "/x", "entry without its end tag"),
        ("<url><loc>/x</loc><a b='c>x</a></url>", "/x", ""),
        ("<url><loc>/x</loc>1 < 2</url>", "/x", "< that is no tag"),
        ("<URL><LOC>/x</LOC></URL>", "/x", ""),
        ("<url><loc>/\x08x</loc></url>", None, "without a URL of a page (1, as '/\\x08x')"),
        ("<url><loc>/&#0;&unknown;x</loc></url>", None, "without a URL"),
        ("<url><loc></loc></url>", None, "without a URL"),
        ("<url><loc>mailto:x</loc></url>", None, "without a URL"),
        ("<url><loc>http://a.example:99999/</loc></url>", None, "without a URL"),
        (f"<url><loc>/{3000 * 'x'}</loc></url>", None, "without a URL"),
        ("</urlset><?xml version='1.0'?><urlset>", None, ""),
        ("<url><loc>/x</loc><lastmod>soon</lastmod></url>", "/x", "known form (1, as 'soon')"),
    ],
)
def test_a_damaged_entry_costs_no_other(entry: str, url: str | None, fault: str) -> None:
    for text in (HEAD + entry + GOOD, HEAD + GOOD + entry):
        found = listed(f"{text}</urlset>".encode(), AT)
        expected = {*URLS, *(["https://a.example" + url] if url else [])}
        assert set(urls_of(found)) == expected
        assert [fault in each for each in found.faults] == [True] * bool(fault), found.faults


def test_files_without_end_tags_are_read() -> None:
    for text in (GOOD.replace("</url>", ""), GOOD.replace("</loc>", ""), GOOD):
        assert urls_of(listed((HEAD + text).encode(), AT))[:3] == URLS[:3]
    cut = listed(WHOLE[: -len("9</loc></url></urlset>")].encode(), AT)
    assert urls_of(cut) == URLS[:3]
    assert "cut, and left out" in cut.faults[0]
    assert "no end tag </urlset>" in listed((HEAD + GOOD).encode(), AT).faults[0]


@pytest.mark.parametrize(
    ("body", "content_type", "fault"),
    [
        (HEAD.replace("UTF-8", "latin-1") + "%s", "", "latin-1"),
        (HEAD.replace("UTF-8", "UTF-16") + "%s", "", "not in utf-16"),
        (HEAD.replace("UTF-8", "foo-8") + "%s", "", "not in foo-8"),
        (HEAD + "%s", "text/xml; charset=iso-8859-1", ""),
    ],
)
def test_utf8_is_known_whatever_is_declared(body: str, content_type: str, fault: str) -> None:
    text = body % "<url><loc>/caf\xe9</loc></url></urlset>"
    found = listed(text.encode(), AT, content_type)
    assert urls_of(found) == ["https://a.example/caf\xe9"]
    assert [fault in each for each in found.faults] == [True] * bool(fault)


def test_other_encodings_are_those_that_are_stated_or_marked() -> None:
    text, url = HEAD + "<url><loc>/\xe9</loc></url></urlset>", ["https://a.example/\xe9"]
    for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
        assert urls_of(listed(text.encode(name), AT)) == url
    assert urls_of(listed(text.encode("cp437"), AT, "text/xml;charset=CP437")) == url
    declared = text.replace("UTF-8", "big5").replace("\xe9", "\u4e2d").encode("big5")
    assert urls_of(listed(declared, AT)) == ["https://a.example/\u4e2d"]
    mixed = (
        HEAD + "<url><loc>/\xe9</loc></url>"
    ).encode() + b"<url><loc>/\xe8</loc></url></urlset>"
    found = listed(mixed, AT)
    assert urls_of(found) == [*url, "https://a.example/\xe8"]
    assert "not in utf-8" in found.faults[0]


def test_sitemaps_of_text_have_a_url_a_line() -> None:
    lines = [*URLS, "https://a.example/\xe9?a=1&b=2"]
    for end in ("\n", "\r\n", "\r", "\n\n \n"):
        for name in ("utf-8", "utf-8-sig", "utf-16"):
            found = listed(end.join(lines).encode(name), AT)
            assert (found.kind, urls_of(found), found.faults) == ("sitemap", lines, [])
    latin = listed("\n".join(lines).encode("latin-1"), AT, 'text/plain; charset="latin-1"')
    assert urls_of(latin) == lines
    found = listed("\n".join(["no url", *URLS]).encode(), AT)
    assert urls_of(found) == URLS
    assert "(1, as 'no url')" in found.faults[0]


def test_compression_is_undone_layer_by_layer() -> None:
    whole = WHOLE.encode()
    for body in (
        gzip.compress(gzip.compress(whole)),
        gzip.compress(whole[:99]) + gzip.compress(whole[99:]),
    ):
        assert urls_of(listed(body, AT)) == URLS
        assert urls_of(listed(body + b"trailing", AT)) == URLS


@pytest.mark.parametrize(
    ("date", "day", "exact"),
    [
        ("2026-11", 20758.0, False),
        ("2026", 20454.0, False),
        ("2026-1-5", 20458.0, False),
        ("2026/01/05 9:00", 20458.375, True),
        ("2026-11-05T10:00:00-0330", 20762.5625, True),
        ("2026-11-05 12:00:00 UTC", 20762.5, True),
        ("20261105T120000Z", 20762.5, False),
        ("Tue, 02 Jan 2024", 19724.0, False),
        ("Tuesday, 02-Jan-24 12:00:00 GMT", 19724.5, True),
        ("January 2, 2024", 19724.0, False),
        ("Tue, 02 Jan 2024 13:00:00 CET", 19724.5, True),
        ("Tue, 02 Jan 2024 07:00:00 EST", 19724.5, True),
        ("Tue, 02 Jan 2024 13:00:00 GMT+01:00", 19724.5, True),
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
        ("<rss><channel xml:base='/b/'><item><link>1</link></item></channel></rss>", ["/b/1"]),
        (f"<a:feed xmlns:a='{ATOM}'><a:entry><a:link href='1'/></a:entry></a:feed>", ["/dir/1"]),
        (f"<rss xmlns:k='{ATOM}'><item><k:link href='/1'/></item></rss>", ["/1"]),
        ("<rss xmlns:k='urn:k'><item><link>/1</link><k:link href='/2'/></item></rss>", ["/1"]),
        ("<RDF><item rdf:about='x'><link>/1</link><dc:date>2024</dc:date></item></RDF>", ["/1"]),
        (
            "<feed xml:base='/b/'><entry xml:base='c/'><link rel='self' href='s'/><link href='1'/>"
            "<link rel='enclosure' href='e'/><link type='application/json' href='j'/>"
            "<source><link href='/s'/></source></entry>"
            "<entry><link xml:base='d/' title='a > b' href='2'/></entry></feed>",
            ["/b/c/1", "/b/d/2"],
        ),
        ("<rss><item><d><![CDATA[<item><link>/2</link>]]></d><link>/1</link></item></rss>", ["/1"]),
        ("<rss><!-- <item><link>/2</link> --><item><link>/1</link></item></rss>", ["/1"]),
        ("<rss><item><d><p>a<br>b</d><link>/1</link></item></rss>", ["/1"]),
    ],
)
def test_links_of_feeds_are_those_of_their_pages(text: str, urls: list[str]) -> None:
    assert urls_of(listed(text.encode(), AT)) == [f"https://a.example{url}" for url in urls]


def test_the_date_of_a_change_counts_before_that_of_the_publication() -> None:
    text = (
        "<rss><item><link>/1</link><pubDate>Tue, 02 Jan 2024 12:00 GMT</pubDate>"
        "<dc:date>{}</dc:date></item></rss>"
    )
    for date, day in (("2024-01-03T12:00Z", 19725.5), ("soon", 19724.5)):
        assert listed(text.format(date).encode(), AT).entries[0].day == pytest.approx(day)


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


def test_tags_and_parts_that_are_read_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc.start()
    listed(b"<rss><item>" + 60_000 * b"<link>x" + b"</item></rss>", AT)
    assert tracemalloc.get_traced_memory()[1] < 4 * 2**20  # 420 kB of text: parts are 10 MB
    tracemalloc.stop()
    monkeypatch.setattr(markup, "MAX_TAGS", 19)
    found = listed(WHOLE.encode(), AT)
    assert urls_of(found) == URLS
    found = listed(WHOLE.replace("<loc>", "<a/><loc>").encode(), AT)
    assert urls_of(found) == URLS[:3]
    assert "more than 19 tags" in found.faults[0]
