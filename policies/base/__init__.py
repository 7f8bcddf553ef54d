"""The bases of policies: binding to an environment, index policies, schedules.

Public modules: allocated, bandwidths, binding, compiled_learner, index, registry, schedules,
sequence, signal_queue.
"""
