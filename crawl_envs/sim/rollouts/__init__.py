"""Compiled rollouts of policies, on the kernel that the environments step.

Public modules: first_round, slotted, timed.
"""
