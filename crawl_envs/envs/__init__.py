"""The Gymnasium environments, single and vector, rendering and wrappers.

Public modules: lane, lettering, overrides, pictures, rendering, single, vector, window, wrappers.
"""
