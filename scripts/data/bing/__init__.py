"""The public Bing set of Kolobov et al. (2019): read, fitted and written as one table of URLs.

===================  ==============================================================================
:mod:`.files`        the five files, plain or gzipped, in blocks of whole lines
:mod:`.parsing`      the compiled readers of their lines
:mod:`.url_tables`   the four small files, joined by URL id
:mod:`.fitting`      change rates from histories
:mod:`.parts`        what is kept while an import runs, so that it can go on
:mod:`.importing`    the whole import
:mod:`.example`      files of the same format, drawn from a law that is known
===================  ==============================================================================

The set and its description: github.com/microsoft/Optimal-Freshness-Crawl-Scheduling. Ask there for
the terms of its use.
"""
