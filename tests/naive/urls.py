"""Slow, obvious twin of the normal form of URLs (RFC 3986, sections 5.2.4, 6.2.2 and 6.2.3)."""

from __future__ import annotations

import re
import string
from urllib.parse import urlsplit

UNRESERVED = string.ascii_letters + string.digits + "-._~"


def normal_url(text):
    """Return the normal form of an http or https URL with a host."""
    parts = urlsplit(text)
    host = parts.hostname
    port = (
        f":{parts.port}"
        if parts.port not in (None, {"http": 80, "https": 443}[parts.scheme])
        else ""
    )
    query = f"?{percent(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{host}{port}{without_dots(percent(parts.path)) or '/'}{query}"


def percent(text):
    """Decode unreserved characters; capital digits for the others."""

    def one(found):
        letter = chr(int(found[1], 16))
        return letter if letter in UNRESERVED else found[0].upper()

    return re.sub("%([0-9a-fA-F]{2})", one, text)


def without_dots(path):
    """Remove dot segments, rule by rule as in section 5.2.4."""
    output = ""
    while path:
        if path.startswith(("../", "./")):
            path = path.split("/", 1)[1]
        elif path.startswith("/./") or path == "/.":
            path = "/" + path[3:]
        elif path.startswith("/../") or path == "/..":
            path = "/" + path[4:]
            output = output.rpartition("/")[0]
        elif path in (".", ".."):
            path = ""
        else:
            segment = re.match("/?[^/]*", path)[0]
            output += segment
            path = path[len(segment) :]
    return output
