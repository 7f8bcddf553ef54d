"""Recorded change histories of real sites.

Public modules: collection, fragments, instance, loading, site_windows, tables, windows.
"""

from __future__ import annotations

from crawl_envs.instances.traces.collection import sites as sites
from crawl_envs.instances.traces.loading import SHIPPED as SHIPPED
from crawl_envs.instances.traces.loading import find as find
from crawl_envs.instances.traces.loading import load as load
from crawl_envs.instances.traces.loading import shipped as shipped
from crawl_envs.instances.traces.parameters import Parameters as Parameters
from crawl_envs.instances.traces.parameters import Pooled as Pooled
from crawl_envs.instances.traces.parameters import load_parameters as load_parameters
from crawl_envs.instances.traces.parameters import parameters_path as parameters_path
from crawl_envs.instances.traces.parameters import save_parameters as save_parameters
from crawl_envs.instances.traces.windows import SIGNALS as SIGNALS
from crawl_envs.instances.traces.windows import Signals as Signals
from crawl_envs.instances.traces.windows import Trace as Trace
from crawl_envs.instances.traces.windows import TraceWindow as TraceWindow
from crawl_envs.instances.traces.windows import check_signals as check_signals
