"""Words of tables and summaries."""

from __future__ import annotations

from scripts.present.tables import counted


def test_one_item_has_no_plural() -> None:
    assert [counted(number, "host") for number in range(3)] == ["0 hosts", "1 host", "2 hosts"]
    assert [counted(number, "fetch", "fetches") for number in (1, 2)] == ["1 fetch", "2 fetches"]
