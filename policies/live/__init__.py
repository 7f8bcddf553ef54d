"""Schedulers for crawlers that run: JSON, HTTP, feeds and sitemaps, Scrapy, Crawlee.

Public modules: copies, crawlee, endpoint, feeds, fetches, listings, messages, overview, scrapy,
scrapy_scheduler, scrapy_settings, watching.
"""
