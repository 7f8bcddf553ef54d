"""Schedulers for crawlers that run: JSON, HTTP, feeds and sitemaps, Scrapy, Crawlee.

Public modules: copies, crawlee, endpoint, feeds, fetches, listings, messages, overview,
page_tables, scrapy, scrapy_requests, scrapy_scheduler, scrapy_settings, watching.
"""
