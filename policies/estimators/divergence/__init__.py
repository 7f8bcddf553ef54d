"""Estimates of the divergence curves of pages with fragments.

Public modules: curve_fit, posterior, profiles.
"""
