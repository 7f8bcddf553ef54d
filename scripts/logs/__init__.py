"""One's own crawl log: estimates, backtests and schedules.

Public modules: backtest_report, backtesting, fitting, learning, live_answers, options, pictures,
planning, schedules, summary, thinned_logs.
"""
