"""Pages that are fresh or stale: changes, signals and requests.

Public modules: lanes, rate_lanes, step.
"""
