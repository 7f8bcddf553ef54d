"""Shared parts of the experiments: sites, assumptions, charts.

Public modules: assumptions, charts, clairvoyant, history, intervals, simulated_logs,
sites.
"""
