"""Worlds: an event process, a divergence, and the lanes that play them.

Public modules: budgets, episodes, first_round, lanes, rollouts, step.
"""
