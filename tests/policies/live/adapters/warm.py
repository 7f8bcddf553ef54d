"""What a crawl loads and compiles, for processes that are forked from one that has it."""

from __future__ import annotations

import sys

import scrapy.core.downloader.contextfactory
import scrapy.core.downloader.handlers.http11
import scrapy.core.engine  # noqa: F401
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from policies.live.scheduler import CrawlScheduler

for group in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS"):
    for name in getattr(default_settings, f"{group}_BASE"):
        load_object(name)
assert "twisted.internet.reactor" not in sys.modules
CrawlScheduler("GreedyNCIS", 1.0, learn=True).warm()
