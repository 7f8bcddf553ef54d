"""Policies for shopping offers: crawl rates by clicks, impressions and price changes.

Public modules: rates, strategies.
"""
