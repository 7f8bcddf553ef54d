"""The report of a suite: one HTML file that needs no network.

Public modules: page.
"""
