"""Compiled rollouts of policies, on the kernel that the environments step.

Public modules: slotted, timed.
"""
