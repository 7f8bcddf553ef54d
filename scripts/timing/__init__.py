"""Timing: method of measurement, timed tasks, baselines, and commands made of cases.

Public modules: checkouts, commands, comparisons, growth, solver_comparisons, stepped, turns.
"""
