"""Code shared by the commands that train, evaluate and tune agents.

Public modules: baselines, jobs, options, ranking, requests, runs, seeds, trials, tuning.
"""
