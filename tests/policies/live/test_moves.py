"""Pages that are redirected for good: to themselves, at a kill, and in a long crawl."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policies.live import moves
from policies.live.copies import Copies, Copy
from policies.live.moves import Moves
from policies.scheduler import CrawlScheduler, DurableScheduler

A, B = "https://a.example/a", "https://a.example/b"
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


def test_ends_of_long_ago_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MAX_ENDS", 4)
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
    assert max(sizes) <= 24
    redirect(known, A, f"{pages[-1]}/new", 90.0)  # the last one is known yet
    assert pages[-1] in scheduler
    assert known.renamed <= known.sources.keys()
