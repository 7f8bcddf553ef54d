"""Commands that make data: recorded histories, URL tables, a market; samples of offers;
episodes of policies.

Public modules: copies, fit_trace, offer_samples, recording, replayed_web, replays.
"""
