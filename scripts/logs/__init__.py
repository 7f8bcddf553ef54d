"""One's own crawl log: estimates, backtests and schedules.

Public modules: backtesting, fitting, learning, options, pictures, planning, summary,
thinned_logs.
"""
