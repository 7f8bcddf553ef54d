"""One's own crawl log: estimates, backtests and schedules.

Public modules: backtesting, fitting, live, options, pictures, planning, simulated_logs, summary,
thinned_logs.
"""
