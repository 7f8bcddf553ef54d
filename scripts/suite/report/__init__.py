"""The pages of a suite: README.md, and the report, one HTML file that needs no network.

Public module: page.
"""
