"""Run policies on many seeds, keep the results as rows on disk, and summarise them.

Public modules: bounds, budget, clairvoyant, comparisons, correlations, entrants, equal_freshness,
intervals, means, rows, runner, settings, specs, workers.
"""
