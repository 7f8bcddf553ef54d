"""Schedulers for crawlers that run: JSON, HTTP, feeds and sitemaps, Scrapy, Crawlee.

Public modules: crawlee, endpoint, feeds, messages, overview, scrapy.
"""
