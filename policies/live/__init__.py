"""Schedulers for crawlers that run: JSON, HTTP, feeds and sitemaps, Crawlee.

Public modules: crawlee, endpoint, feeds, messages, overview.
"""
