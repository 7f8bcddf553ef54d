"""The Gymnasium environments, single and vector, rendering and wrappers.

Public modules: lettering, pictures, rendering, single, vector, window, wrappers.
"""
