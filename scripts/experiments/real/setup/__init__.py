"""Shared parts of the experiments: sites, assumptions, charts.

Public modules: assumptions, budget_charts, charts, clairvoyant, history, sites.
"""
