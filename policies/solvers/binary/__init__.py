"""Optimal crawl rates for binary staleness.

Public modules: periodic, random_crawls.
"""
