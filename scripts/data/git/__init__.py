"""Read recorded histories of sites from git repositories.

Public modules: git_history, recorded_history, trace_writing.
"""
