"""Import of the public Bing set of Kolobov et al. (2019) as one table of URLs.

===================  ==============================================================================
:mod:`.files`        the five files, plain or gzipped, in blocks of whole lines
:mod:`.parsing`      compiled parsers of their lines
:mod:`.url_tables`   the four small files, joined by URL id
:mod:`.fitting`      change rates from histories
:mod:`.parts`        intermediate results of an import, for resuming
:mod:`.importing`    the whole import
:mod:`.example`      synthetic files of the same format
===================  ==============================================================================

The set and its description: github.com/microsoft/Optimal-Freshness-Crawl-Scheduling. Ask there for
the terms of its use.

Public modules: example, importing.
"""
