"""Commands that make data: recorded histories, URL tables, a market; samples of offers.

Public modules: fit_trace, offer_samples, replayed_web, replays.
"""
