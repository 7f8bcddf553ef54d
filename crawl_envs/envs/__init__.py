"""The Gymnasium environments, single and vector, rendering and wrappers.

Public modules: lettering, rendering, single, vector, wrappers.
"""
