"""One's own crawl log: estimates, backtests and schedules.

Public modules: audit, backtest_report, backtest_runs, backtesting, fitting, learning, live_answers,
options, pictures, planning, replay, replayed_web, schedules, summary.
"""
