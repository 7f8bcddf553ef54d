"""BELIEF-NCIS with a correction of its index that is learned from reward alone.

A small network, the same for any number of pages, multiplies the crawl value of every page by a
factor in (1/3, 3). Nothing here needs torch.

Public modules: history, inputs, kernels, layout.
"""
