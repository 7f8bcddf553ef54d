"""Optimal crawl rates for harmonic staleness (LambdaCrawl)."""
