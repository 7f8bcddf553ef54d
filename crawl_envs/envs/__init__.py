"""The Gymnasium environments, single and vector, rendering and wrappers.

Public modules: rendering, single, vector, wrappers.
"""
