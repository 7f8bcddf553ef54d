"""Optimal crawl rates for binary staleness.

Public modules: discrete_time, periodic, poisson.
"""
