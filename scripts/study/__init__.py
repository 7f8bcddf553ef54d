"""Studies: entrants and settings, a runner with workers, rows on disk, intervals and means.

Public modules: bounds, budget, clairvoyant, comparisons, correlations, entrants, equal_freshness,
intervals, means, rows, runner, settings, specs, workers.
"""
