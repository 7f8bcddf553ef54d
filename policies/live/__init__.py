"""Schedulers for crawlers that run: JSON, an endpoint over HTTP, Scrapy, feeds and sitemaps.

Public modules: endpoint, feeds, messages, scrapy.
"""
