"""What experiments measure in the same way: functions of a seed that return numbers by metric.

Public modules: assumptions, backtests, learned_values, recorded, simulated_logs, site_logs.
"""
