"""Schedulers for crawlers that run: messages in JSON, an endpoint over HTTP, feeds and sitemaps.

Public modules: endpoint, feeds, messages.
"""
