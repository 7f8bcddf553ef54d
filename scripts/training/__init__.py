"""Common parts of the commands that train, evaluate and tune agents.

Public modules: baselines, cells, evaluation, generalist, jobs, options, pictures, ranges, ranking,
recipes, requests, seeds, trials_picture, tuning.
"""
