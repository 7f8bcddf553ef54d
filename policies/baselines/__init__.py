"""Simple policies, and the adaptive schedules of public crawlers.

Public module: heuristics.
"""
