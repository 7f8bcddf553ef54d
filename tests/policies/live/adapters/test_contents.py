"""What is compared of pages: the same in Scrapy, in Crawlee and in a loop of one's own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crawlee import HttpHeaders
from crawlee.errors import ContextPipelineInterruptedError
from scrapy.responsetypes import responsetypes
from scrapy.settings import Settings

from policies.live.adapters.copies import digest, text_of
from policies.live.adapters.crawlee import ScheduledRequests
from policies.live.adapters.messages import SECONDS_PER_DAY, day_of
from policies.live.adapters.scrapy_settings import read_options
from policies.live.scheduler import CrawlScheduler

URL = "https://a.example/p"
HTML, CYRILLIC = "text/html", "<html><p>да</p><script>{}</script>"
CASES = {
    "script": (HTML, b"<p>a</p><script>1</script>", HTML, b"<p>a</p><script>2</script>", True),
    "style, comment, tag": (HTML, b"<p>a<!--1--><style>b", HTML, b"<div id=2>a<style>c", True),
    "text": (HTML, b"<p>a</p>", HTML, b"<p>b</p>", False),
    "white space": (HTML, b"<p>a b</p>", HTML, b"<p>a\n b</p>\n", True),
    "XHTML": ("application/xhtml+xml; q=1", b"<a id='1'>a</a>", HTML, b"<a>a</a>", True),
    "no type": ("", b"<!DOCTYPE html><script>1", "", b"<!doctype html><script>2", True),
    "no type, no HTML": ("", b"<a>1", "", b"<b>1", False),
    "JSON": ("application/json", b'{"a": "<b>"}', "application/json", b'{"a": "<i>"}', False),
    "XML": ("application/xml", b"<a b='1'/>", "application/xml", b"<a b='2'/>", False),
    "text with tags": ("text/plain", b"<b>1", "text/plain", b"<i>1", False),
    "picture": ("image/png", b"\x89PNG\0 \1", "image/png", b"\x89PNG\0\t\1", False),
    "charset of the header": (
        "text/html; charset=windows-1251",
        CYRILLIC.format(1).encode("cp1251"),
        'text/html; charset="UTF-8"',
        CYRILLIC.format(2).encode(),
        True,
    ),
    "charset of a meta tag": (
        HTML,
        b"<meta charset='windows-1251'>" + CYRILLIC.format(1).encode("cp1251"),
        HTML,
        CYRILLIC.format(2).encode(),
        True,
    ),
    "byte order mark": (
        HTML,
        CYRILLIC.format(1).encode("utf-16"),
        "text/html; charset=utf-16-le",
        CYRILLIC.format(2).encode("utf-16-le"),
        True,
    ),
    "a meta tag that is wrong": (
        HTML,
        b"<meta charset=utf-16><p>a</p><script>1",
        HTML,
        b"<meta charset=idna><p>a</p><script>2",
        True,
    ),
    "no characters": (HTML, b"<p>\xff", HTML, b"<p>\xfe", False),
    "no charset": ("text/html; charset=hex", b"<p>61", "text/html; charset=\0", b"<i>61", True),
}
"""Types and bodies of two answers, and whether they are the same page."""


def scrapy_compares(answers: list[tuple[str, bytes]]) -> bool:
    """Return whether Scrapy takes two answers for the same page."""
    compare = read_options(Settings({"RECRAWL_FOLDER": "x", "RECRAWL_BANDWIDTH": 1})).compare
    marks = set()
    for kind, body in answers:
        headers = {b"Content-Type": kind.encode()} if kind else {}
        made: Any = responsetypes.from_args(headers=headers, url=URL, body=body)
        marks.add(digest(compare(made(URL, headers=headers, body=body))))
    return len(marks) == 1


def crawlee_compares(folder: Path, answers: list[tuple[str, bytes]], **options: Any) -> bool:
    """Return whether Crawlee passes by the handler at the second of two answers."""
    second = 1.0 / SECONDS_PER_DAY
    scheduler = CrawlScheduler("Greedy", 1e3 / second, start=day_of(None) - second, learn=True)
    manager, passed = ScheduledRequests(scheduler, folder, **options), list[bool]()

    async def steps() -> None:
        await manager.add_requests([URL])
        for kind, body in answers:
            request = None
            async with asyncio.timeout(20.0):
                while request is None:
                    request = await manager.fetch_next_request()

            async def read(body: bytes = body) -> bytes:
                return body

            headers = HttpHeaders({"Content-Type": kind} if kind else {})
            answer = SimpleNamespace(status_code=200, headers=headers, read=read)
            context: Any = SimpleNamespace(request=request, http_response=answer)
            try:
                await manager.observe(context)
                passed.append(False)
            except ContextPipelineInterruptedError:
                passed.append(True)
            await manager.mark_request_as_handled(request)

    asyncio.run(steps())
    assert not passed[0]
    return passed[1]


@pytest.mark.parametrize("name", CASES)
def test_all_adapters_compare_alike(name: str, tmp_path: Path) -> None:
    *_, same = kind, body, other, new, _ = CASES[name]
    answers = [(kind, body), (other, new)]
    assert scrapy_compares(answers) == same
    assert crawlee_compares(tmp_path, answers) == same
    assert (digest(text_of(body, kind)) == digest(text_of(new, other))) == same


def test_what_crawlee_compares_is_a_setting(tmp_path: Path) -> None:
    def main_part(body: bytes, content_type: str) -> bytes:
        assert content_type == HTML
        return body.partition(b"<hr>")[0]

    answers = [(HTML, b"<p>a<hr>1"), (HTML, b"<p>a<hr>2")]
    assert crawlee_compares(tmp_path / "1", answers, compare=main_part)
    assert not crawlee_compares(tmp_path / "2", answers)
