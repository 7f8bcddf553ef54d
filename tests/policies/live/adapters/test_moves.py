"""Pages that are redirected for good: to others, to themselves, at a kill, and in a long crawl."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.live.adapters.copies import Copies, Copy
from policies.live.adapters.fetches import host_of
from policies.live.adapters.moves import Moves
from policies.live.scheduler import CrawlScheduler, DurableScheduler

A, B, HOME = (f"https://a.example/{name}" for name in ("a", "b", ""))
NEW = "https://www.b.example/a"
NOW, MINUTE = 20_000.0, 1.0 / 1440.0
COPY = Copy('"etag"', None, "digest", '{"callback": "parse_product"}')


def new() -> CrawlScheduler:
    return CrawlScheduler("Greedy", 1e3, learn=True, keep_gone=9.0)


def redirect(known: Moves, page: str, end: str, now: float) -> None:
    for time in (now, now + 0.1):
        known.note(page, end, time)
    known.make(now + 1.0, ())


@pytest.mark.parametrize("end", [A, "HTTPS://A.example:443/a", "https://a.example/%61"])
def test_a_page_that_is_redirected_to_itself_stays(end: str, tmp_path: Path) -> None:
    scheduler, copies = new(), Copies(tmp_path / "copies")
    scheduler.add([A], host="a.example")
    redirect(Moves(scheduler, copies), A, end, 1.0)
    assert A in scheduler
    assert scheduler.describe(A)["state"] != "gone"
    assert len(scheduler) == 1


@pytest.mark.parametrize("call", ["put", "remove"])
def test_a_kill_in_a_move_loses_no_copy(call: str, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        scheduler = DurableScheduler(tmp_path / "pages", new())
        copies = Copies(tmp_path / "copies")
        scheduler.add([A], host="a.example")
        copies.put({A: COPY})
        setattr(copies, call, lambda *_: os._exit(9))
        redirect(Moves(scheduler, copies), A, B, 1.0)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with DurableScheduler(tmp_path / "pages") as scheduler:
        [page] = [page for page in (A, B) if page in scheduler]
        assert page == {"put": A, "remove": B}[call]
        assert Copies(tmp_path / "copies")[page] == COPY


def test_ends_that_change_are_forgotten(tmp_path: Path) -> None:
    scheduler, pages = new(), [f"https://a.example/{k}" for k in range(20)]
    scheduler.add(pages, host="a.example")
    known = Moves(scheduler, Copies(tmp_path / "copies"))
    for now, page in enumerate(pages):
        for k in range(9):  # ends that are not the same twice
            known.note(page, f"{page}/{k}", now)
        redirect(known, page, f"{page}/new", now)
    assert all(f"{page}/new" in scheduler for page in pages)
    assert not known.due
    sizes = [len(part) for part in (known.ends, known.sources, known.renamed)]
    assert max(sizes) <= 20
    redirect(known, A, f"{pages[-1]}/new", 90.0)  # the last one is known yet
    assert pages[-1] in scheduler
    assert known.renamed <= known.sources.keys()


class Redirects:
    """A scheduler and its copies, and pages that redirect."""

    def __init__(self, folder: Path, *pages: str) -> None:
        self.scheduler = CrawlScheduler("Greedy", 1e3, learn=True, start=NOW, keep_gone=9.0)
        self.scheduler.add(pages, host=[host_of(page) for page in pages], last_crawl=NOW)
        self.copies = Copies(folder / "copies")
        self.copies.put({page: Copy(digest=page) for page in pages})
        self.moves, self.now = Moves(self.scheduler, self.copies), NOW

    def fetch(self, page: str, end: str = "") -> None:
        self.now += MINUTE
        self.scheduler.next(self.now)
        self.scheduler.report([page], self.now - 0.5 * MINUTE)
        self.moves.note(page, end, self.now)
        self.moves.make(self.now, ())


def test_a_page_that_is_redirected_for_good_gets_its_new_id(tmp_path: Path) -> None:
    site = Redirects(tmp_path, A, B)
    for end in (NEW, "", NEW, B, NEW):  # not twice in a row
        site.fetch(A, end)
    assert A in site.scheduler
    site.fetch(A, NEW)
    assert A not in site.scheduler
    assert site.scheduler.describe(NEW)["copy"] == site.now - 0.5 * MINUTE
    assert (site.copies[NEW], site.copies[A]) == (Copy(digest=A), Copy())
    site.scheduler.hold("a.example", NOW + 9.0)
    assert site.scheduler.next(NOW + 1.0).id == NEW  # of its new host


def test_a_page_that_is_redirected_to_another_page_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = Redirects(tmp_path, A, B)
    site.scheduler.report([B], NOW + 1e-9, "gone")
    for _ in range(2):
        site.fetch(A, B)
    assert site.scheduler.describe(A)["state"] == "gone"
    assert B in site.scheduler  # it came back
    assert f"{A} is gone: it redirects to {B}" in caplog.text


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2, 0, 1, 2), (0, 0, 1, 2, 1, 2), (0, 0, 0, 1, 1, 2, 2)])
def test_pages_that_are_redirected_to_one_stay(
    known: bool, order: tuple[int, ...], tmp_path: Path
) -> None:
    pages = [f"https://a.example/{k}" for k in range(3)]
    end = HOME if known else "https://login.example/"
    site = Redirects(tmp_path, *pages, *[HOME][: int(known)])
    for number in order:
        if pages[number] in site.scheduler:
            site.fetch(pages[number], end)
    site.moves.make(site.now, ())
    assert all(page in site.scheduler for page in pages)
    assert all(site.copies[page].digest == page for page in pages)
    assert len(site.scheduler) == 3 + known
