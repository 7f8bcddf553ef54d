"""Train and load agents of Stable-Baselines3.

Public modules: algorithms, arguments, belief_columns, bridge, comparison, curve, hyperparameters,
lanes, loading, model_file, own_classes, torch_threads, training, validation.
"""

from crawl_envs.system.own_packages import check_own

check_own("agents")
