"""Optimal crawl rates for binary staleness."""
