"""One module per family of environments: its documentation page and its construction.

Public module: longevity.
"""
