"""The normal form of a URL (RFC 3986), by which spellings are one page, and its host."""

from __future__ import annotations

from urllib.parse import urlsplit

from yarl import URL

PORTS = {"http": 80, "https": 443, "ftp": 21}


def normal_url(text: str, merge_schemes: bool = False, merge_www: bool = False) -> str:
    """Return the normal form of RFC 3986, sections 6.2.2 and 6.2.3; of what is no URL, the text.

    It has no fragment, which is no part of what is fetched (section 6.1), nor an empty query.
    Options take http as https, and leave out a leading www. of the host.
    """
    try:
        url = URL(text)
    except ValueError:
        return text
    if not (url.scheme and url.raw_host):
        return text
    authority = url.raw_authority
    if url.explicit_port is not None and url.explicit_port == PORTS.get(url.scheme):
        authority = authority.removesuffix(f":{url.explicit_port}")
    scheme = "https" if merge_schemes and url.scheme == "http" else url.scheme
    return f"{scheme}://{authority.removeprefix('www.' * merge_www)}{url.raw_path_qs}"


def host_of(url: str) -> str:
    """Return the host of an address, without its port; "" without one."""
    return urlsplit(url).hostname or ""
