"""What several experiments measure, as functions of a seed, and what they compute from rows.

Public modules: costs, courses, derived, long_run, offer_freshness, offer_strategies, offer_tables,
over_pages, page_rates, signal_estimates.
"""
