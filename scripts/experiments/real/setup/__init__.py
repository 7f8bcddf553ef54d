"""Shared parts of the experiments: sites, assumptions, charts.

Public modules: assumptions, charts, history, intervals, simulated_logs, sites.
"""
