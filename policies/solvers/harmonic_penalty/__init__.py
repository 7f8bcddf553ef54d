"""Optimal crawl rates for harmonic staleness (LambdaCrawl).

Public modules: approx, costs, lambdacrawl, page_totals, periodic.
"""
