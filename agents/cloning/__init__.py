"""Agents that imitate an analytic policy.

Public module: train.
"""

from crawl_envs.types.own_packages import check_own

check_own("agents")
