"""Store the requests of pages as JSON in Scrapy's form, and make them again."""

from __future__ import annotations

import json
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.request import request_from_dict

from crawl_envs.types.arguments import quantity
from policies.live.adapters.copies import Copies
from policies.live.adapters.fetches import host_of

PAGE, FEED, SOURCE = "recrawl_page", "recrawl_feed", "recrawl_source"
"""Keys of ``meta``: the page or feed that a request fetches, and the page that yielded it."""
FETCH_KEYS = (
    *(PAGE, FEED, SOURCE, "dont_retry", "dont_cache", "download_latency", "retry_times"),
    *("redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "is_start_request"),
    *("_dont_cache", "cache_timestamp", "cached_response", "_auth_proxy", "_scheme_proxy"),
)
"""Keys that a fetch writes into ``meta``; callbacks may copy them by ``meta=response.meta``."""


class RecrawlSpiderMiddleware(BaseSpiderMiddleware):
    """Mark each request that a callback yields with the callback's page."""

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        """Return a request with the id of the yielding page in ``meta``."""
        if response is not None and response.request is not None:
            request.meta[SOURCE] = response.request.meta.get(PAGE, response.url)
        return request


def users_meta(meta: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Return the user's part of a request's ``meta``: without entries that a fetch wrote."""
    written = {"download_timeout": timeout, "download_slot": host_of(meta.get(PAGE, ""))}
    if "_scheme_proxy" in meta:  # of the environment
        written["proxy"] = meta.get("proxy")
    return {k: x for k, x in meta.items() if k not in FETCH_KEYS and (k, x) not in written.items()}


def write_request(request: Request, page: str, spider: Spider, timeout: float) -> str:
    """Convert a request to JSON without default values; ValueError if a part cannot be stored.

    ``page`` is the request's URL without fragment, ``timeout`` the downloader's, in seconds.
    """
    meta = users_meta(request.meta, timeout)
    longest = quantity('meta["download_timeout"]', meta.get("download_timeout", timeout))
    if longest > timeout:
        raise ValueError(
            f'meta["download_timeout"] must be at most DOWNLOAD_TIMEOUT, {timeout}, got {longest}'
        )
    fields = {name: getattr(request, name) for name in request.attributes} | {"meta": meta}
    fields |= {role: method_name(role, fields[role], spider) for role in ("callback", "errback")}
    fields["headers"] = {
        name.decode("latin-1"): [value.decode("latin-1") for value in values]
        for name, values in request.headers.items()
        if name not in (b"If-None-Match", b"If-Modified-Since")  # they are of the copy
    }
    defaults = Request(page).to_dict() | {"url": request.url}
    if type(request) is not Request:
        fields["_class"] = f"{type(request).__module__}.{type(request).__name__}"
    fields = {k: x for k, x in fields.items() if x != defaults.get(k)}
    for name, value in fields.items():
        check_json(name, value)
    return json.dumps(fields)


def read_request(text: str, page: str, spider: Spider) -> Request:
    """Build the request of a page from the JSON of :func:`write_request`."""
    fields = {"url": page} | json.loads(text)
    fields["headers"] = {
        name: [value.encode("latin-1") for value in values]
        for name, values in fields.get("headers", {}).items()
    }
    return request_from_dict(fields, spider=spider)


def check_methods(copies: Copies, spider: Spider) -> None:
    """Raise ValueError if a spider lacks a callback, errback or class of the stored requests."""
    data, kinds = {"headers", "cookies", "meta", "cb_kwargs"}, set()
    for parser in {copy.parser for copy in copies.copies.values()} - {None}:
        fields = json.loads(str(parser)).items()
        kinds.add(json.dumps({name: value for name, value in fields if name not in data}))
    for kind in sorted(kinds):
        try:
            read_request(kind, "data:,", spider)
        except (ValueError, NameError, ImportError) as error:
            raise ValueError(
                f"spider must have what its pages were requested with, but {error}; keep it, or "
                "begin another RECRAWL_FOLDER"
            ) from None


def method_name(role: str, function: Any, spider: Spider) -> str | None:
    """Return the name of a spider's method, None for None; ValueError for another function."""
    for name in (getattr(function, "__name__", ""), *dir(spider)) if function else ():
        if getattr(spider, name, None) == function:
            return str(name)
    if function is None:
        return None
    name = getattr(function, "__qualname__", repr(function))
    raise ValueError(
        f"{role} must be a method of the spider, got {name}; write one, and give it cb_kwargs"
    )


def check_json(name: str, value: Any) -> None:
    """Raise ValueError unless a value survives JSON; name the bad entry of a dict."""
    try:
        if json.loads(json.dumps(value)) == value:
            return
    except (TypeError, ValueError, RecursionError):
        pass
    for key, entry in value.items() if isinstance(value, dict) and "[" not in name else ():
        check_json(f"{name}[{key!r}]", entry)
    raise ValueError(
        f"{name} must be plain JSON (text, numbers, lists, dicts by text), got {value!r:.80}; "
        "make it in the callback, or in a downloader middleware"
    )
