"""One's own crawl log: estimates, backtests and schedules.

Public modules: audit, backtest_report, backtest_runs, backtesting, example_log, fitting, learning,
live_answers, options, pictures, planning, replay, replayed_web, schedules, summary.
"""
