"""The policies of the NCIS paper, and learners built on their crawl values.

Public modules: delayed, greedy, lagrangian, learning_greedy.
"""
