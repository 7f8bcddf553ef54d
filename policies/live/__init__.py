"""Schedulers for crawlers that run: messages in JSON, an endpoint over HTTP, and Scrapy.

Public modules: endpoint, messages, scrapy.
"""
