"""The suites of tasks: what is played, how it is scored, and the leaderboard.

Public modules: bounds, entrants, leaderboard, scores, tasks.
"""
