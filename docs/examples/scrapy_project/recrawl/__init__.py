"""A Scrapy project that keeps crawling: pages are fetched again when it pays."""
