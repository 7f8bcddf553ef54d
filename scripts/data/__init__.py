"""Commands that make data: recorded histories, URL tables; samples of offers.

Public modules: fit_trace, offer_samples.
"""
