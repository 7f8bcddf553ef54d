"""BELIEF-NCIS with a history of crawls and signals, and the inputs that describe it.

Public modules: history, inputs, kernels, layout.
"""
