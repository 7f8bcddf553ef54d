"""The suites of tasks: what is played, how it is scored, and the leaderboard.

Public modules: entrants, leaderboard, scores, tasks.
"""
