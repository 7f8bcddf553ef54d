"""Estimates of divergence curves, lifetimes and change counts of fragments.

Public modules: counts, curve_fit, lifetimes, posterior, profiles, step_bounds.
"""
