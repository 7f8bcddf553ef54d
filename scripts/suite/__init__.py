"""Suites of tasks: simulate all entrants, score them, and write the leaderboard.

Public modules: bounds, crawl_v2, entrants, leaderboard, protocol, scores, suites, tasks.
"""
