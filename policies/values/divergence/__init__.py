"""Divergence curves of pages made of fragments, and the utility of a refresh.

Public modules: curves, one_region, regions, tabulated.
"""
