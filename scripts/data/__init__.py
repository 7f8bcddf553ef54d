"""Commands that make data: recorded histories, URL tables.

Public module: fit_trace.
"""
