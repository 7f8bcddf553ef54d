"""Make data sets: recorded histories of sites, URL tables, markets, and episodes of policies.

Public modules: fit_trace, offer_samples, recording, replays.
"""
