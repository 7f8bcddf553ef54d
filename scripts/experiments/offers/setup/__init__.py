"""Shared parts of the experiments: runs, tables, charts.

Public modules: charts, measures, paper, strategies, tables.
"""
