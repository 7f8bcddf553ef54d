"""One's own crawl log: estimates, backtests and schedules.

Public modules: backtest_report, backtesting, fitting, learning, options, pictures,
planning, summary, thinned_logs.
"""
