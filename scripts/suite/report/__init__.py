"""Write the pages of a suite: README.md, and a report in one HTML file that needs no network.

Public module: page.
"""
