"""The policies of the paper on shopping offers.

Public modules: rates, strategies.
"""
