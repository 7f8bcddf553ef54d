"""Commands that make data: recorded histories, URL tables, a market; samples of offers.

Public modules: copies, fit_trace, offer_samples, replayed_web, replays.
"""
