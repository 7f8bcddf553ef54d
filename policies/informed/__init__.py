"""Oracles that know the true law, but see only crawls and signals; the registry has none of them.

Public modules: chains, deploys, policy.
"""
