"""An index learned from reward alone, by evolution strategies.

Public modules: inputs, kernels.
"""
