"""Suites of tasks: simulate all entrants, score them, and write the leaderboard.

Public modules: bounds, entrants, leaderboard, protocol, scores, suites, tasks.
"""
