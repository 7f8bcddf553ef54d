"""Analytic policies: crawl values, solvers, schedules, and what is composed of them."""
