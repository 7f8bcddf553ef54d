"""Sets of URLs drawn from published statistics, or read from a file.

Public modules: bing, lambdacrawl, law, pool.
"""
