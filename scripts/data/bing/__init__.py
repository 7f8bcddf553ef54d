"""Import of the public Bing set of Kolobov et al. (2019) as one table of URLs.

The set and its description: github.com/microsoft/Optimal-Freshness-Crawl-Scheduling. Ask there for
the terms of its use. ``files`` reads the five files, ``importing`` joins and writes them, and
``example`` writes synthetic files of the same format.

Public modules: example, importing.
"""
