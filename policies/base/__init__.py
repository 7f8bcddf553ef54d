"""The bases of policies: the protocol, live pages, index policies, schedules, the registry.

Public modules: allocated, bandwidths, binders, binding, compiled_learner, index, live, registry,
schedules.
"""
