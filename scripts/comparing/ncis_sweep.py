"""What figures of Busa-Fekete et al. share: bandwidth 100, time 1000, more and more pages."""

from __future__ import annotations

from typing import Any

ID = "CrawlNCIS-v0"
NUM_PAGES = (100, 200, 300, 500, 750, 1000, 10000)


def sweep(instance: str) -> dict[str, dict[str, Any]]:
    """Arguments of the environment for each number of pages, by the setting's name."""
    return {
        f"m={num_pages}": {
            "instance": instance,
            "num_pages": num_pages,
            "bandwidth": 100.0,
            "horizon": 1000.0,
        }
        for num_pages in NUM_PAGES
    }
