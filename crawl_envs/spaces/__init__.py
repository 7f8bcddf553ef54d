"""Actions, observations and rewards.

Public modules: actions, observations, rewards.
"""
