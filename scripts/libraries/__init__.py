"""Other libraries of reinforcement learning, and how they use the environments.

Public modules: datasets, interfaces, recording, report.
"""
