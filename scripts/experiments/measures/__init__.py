"""Functions of several experiments: measures of a seed, and computations from rows.

Public modules: assumptions, backtests, costs, courses, derived, discrete_optimum, learned_values,
long_run, offer_freshness, offer_strategies, offer_tables, over_pages, page_rates, recorded,
signal_estimates, simulated_logs, site_logs.
"""
