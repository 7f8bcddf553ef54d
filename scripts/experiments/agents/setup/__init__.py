"""Trainings of algorithms on tasks of the suite.

Public modules: checkpoints, trainings.
"""
