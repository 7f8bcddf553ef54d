"""Schedulers for crawlers that run: messages in JSON, and an endpoint over HTTP.

Public modules: endpoint, messages.
"""
