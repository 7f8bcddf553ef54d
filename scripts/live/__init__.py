"""Tools for crawl engineers: estimates, backtests and schedules from a crawl log.

Public modules: backtest_report, backtest_runs, backtesting, example_log, fitting, goals, learning,
live_answers, options, pictures, planning, replay, replayed_web, schedules, signal_audit, summary.
"""
