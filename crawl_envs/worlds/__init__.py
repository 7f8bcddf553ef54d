"""Worlds: an event process, a divergence, and the lanes that play them.

Public modules: budgets, episodes, lanes, rollouts, step.
"""
