"""Simple policies for comparison, and the adaptive schedules of public crawlers.

Public modules: crawlers, heuristics.
"""
