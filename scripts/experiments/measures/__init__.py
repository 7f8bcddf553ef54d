"""What several experiments measure, as functions of a seed, and what they compute from rows.

Public modules: courses, over_pages, page_rates, signal_estimates.
"""
