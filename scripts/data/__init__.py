"""Commands that make data: recorded histories, URL tables, markets and episodes of policies.

Public modules: fit_trace, offer_samples, recording, replays.
"""
