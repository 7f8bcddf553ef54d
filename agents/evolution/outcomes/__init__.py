"""An index learned from the outcomes of crawls, *changed* or *not changed*, without any reward.

Public modules: crossing, fitting, inputs, kernels, learning, recording.
"""
