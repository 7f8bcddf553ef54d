"""Shared parts of the experiments: curves, policies, sites, charts.

Public modules: charts, curves, fragment_charts, fragment_curves, fragment_groups,
fragment_interpolation, fragment_pages, fragment_records, fragment_snapshots, policies, runs,
sites.
"""
