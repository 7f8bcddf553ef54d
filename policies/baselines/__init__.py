"""Simple policies for comparison, and the rules of crawlers in use.

Public modules: crawlers, heuristics, queues.
"""
