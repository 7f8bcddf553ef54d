"""Shared parts of the experiments: sweeps, series, charts.

Public modules: corruption, page_rates, series, signal_estimates, sweep.
"""
