"""Logs of crawlers: what was crawled when, and what was found; and tables of their pages.

Public modules: crawl_log, imputation, replay.
"""

from crawl_envs.logs.crawl_log import OUTCOMES, CrawlLog, History
from crawl_envs.logs.page_table import (
    PageTable,
    read_page_table,
    write_page_table,
)
from crawl_envs.logs.reading import read_crawl_log
from crawl_envs.logs.times import TIME_UNITS
from crawl_envs.logs.urls import hosts_of
from crawl_envs.types.urls import normal_url

__all__ = [
    "OUTCOMES",
    "TIME_UNITS",
    "CrawlLog",
    "History",
    "PageTable",
    "hosts_of",
    "normal_url",
    "read_crawl_log",
    "read_page_table",
    "write_page_table",
]
