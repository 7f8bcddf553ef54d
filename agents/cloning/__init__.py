"""Agents that imitate an analytic policy.

Public module: train.
"""
