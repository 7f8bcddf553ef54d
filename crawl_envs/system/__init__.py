"""Files, locks, worker processes, and the guard against packages of the same name.

Public modules: files, own_packages, worker_processes.
"""
