"""The bases of policies: the protocol, live pages, index policies, schedules, the registry.

Public modules: allocated, bandwidths, bound, choices, columns, compiled_learner, index, live,
observations, policy, promising, registry, schedules.
"""
