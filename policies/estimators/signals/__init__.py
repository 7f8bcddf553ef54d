"""Estimates of signal quality.

Public modules: empirical_bayes, likelihood, newton, quality.
"""
