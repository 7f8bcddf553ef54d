"""Agents that learn to imitate an analytic policy.

Public module: train.
"""

from crawl_envs.system.own_packages import check_own

check_own("agents")
