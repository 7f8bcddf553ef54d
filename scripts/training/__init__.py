"""Common parts of the commands that train, evaluate and tune agents.

Public modules: baselines, candidates, hyperparameter_files, jobs, options, ranking,
requests, seeds, tuning.
"""
