"""Whether a page is due, as a tool of the Model Context Protocol: for assistants with copies.

With the extra ``mcp``, beside an endpoint (:mod:`policies.live.endpoint`), over standard input and
output::

    python -m policies.live.mcp http://localhost:8808
"""

from __future__ import annotations

import json
import sys
import urllib.parse
import urllib.request
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PATIENCE = 30.0
"""Seconds that an endpoint may take."""


def server(address: str) -> MCPServer:
    """Return the server of the tool ``due``, which asks the endpoint at an address."""
    tools = MCPServer("crawl-envs")

    @tools.tool()
    def due(url: str) -> dict[str, Any]:
        """Tell whether the copy of a web page should be fetched again before it is used.

        Returns ``due``, ``why``, ``stale`` (the probability that the copy has changed), and
        ``next``, the date at which the page is due if nothing happens. It changes nothing.
        """
        asked = f"{address.rstrip('/')}/due?{urllib.parse.urlencode({'url': url})}"
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                told: dict[str, Any] = json.load(answer)
        except (OSError, ValueError) as error:
            raise ToolError(f"{address} must be an endpoint that answers: {error}") from None
        return told

    return tools


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python -m {__spec__.name} http://localhost:8808")
    server(sys.argv[1]).run()
