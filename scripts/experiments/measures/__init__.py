"""What several experiments measure, as functions of a seed, and what they compute from rows.

Public modules: costs, courses, derived, long_run, over_pages, page_rates, signal_estimates.
"""
