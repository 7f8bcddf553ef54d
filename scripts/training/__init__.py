"""Common parts of the commands that train, evaluate and tune agents.

Public modules: baselines, evaluation, generalist, jobs, pictures, ranges, ranking, recipes,
requests, seeds, trials_picture, tuning.
"""
