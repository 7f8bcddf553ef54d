"""What the commands that train, evaluate and tune agents share.

Public modules: baselines, jobs, options, ranking, requests, runs, seeds, trials, tuning.
"""
