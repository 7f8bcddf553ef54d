"""Read crawl logs and tables of pages, and draw the changes that a log did not record.

Public modules: costs, crawl_log, imputation.
"""

from policies.live.logs.crawl_log import OUTCOMES, CrawlLog, History
from policies.live.logs.page_table import PageTable, read_page_table, write_page_table
from policies.live.logs.reading import read_crawl_log
from policies.live.logs.times import TIME_UNITS
from policies.live.logs.urls import hosts_of
from policies.live.urls import normal_url

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
