"""Logs of crawlers: what was crawled when, and what was found; and tables of their pages.

Public modules: crawl_log, imputation, replay.
"""

from crawl_envs.instances.logs.crawl_log import CrawlLog
from crawl_envs.instances.logs.page_table import (
    PageTable,
    hosts_of,
    read_page_table,
    write_page_table,
)
from crawl_envs.instances.logs.reading import read_crawl_log

__all__ = [
    "CrawlLog",
    "PageTable",
    "hosts_of",
    "read_crawl_log",
    "read_page_table",
    "write_page_table",
]
