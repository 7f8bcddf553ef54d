"""Decide which URLs of a log are the same page, and find their hosts (RFC 3986)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crawl_envs.types import FloatArray, IntArray
from policies.live.logs.columns import Columns
from policies.live.urls import normal_url

HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?(?P<host>\[[^\]/?#]*\]|[^/?#:]*)"
"""Matches the host of a URL, without user and port (RFC 3986, section 3.2)."""


class Pages(NamedTuple):
    """The pages of a log: each row's page, (n,); names of pages, (p,); page of each normal form."""

    number: IntArray
    urls: NDArray[np.object_]
    page_of_form: dict[str, int]
    merge_schemes: bool
    merge_www: bool

    def find(self, urls: Iterable[str]) -> IntArray:
        """Return the page of each URL, -1 for a URL of no page."""
        normal = (normal_url(url, self.merge_schemes, self.merge_www) for url in urls)
        return np.array([self.page_of_form.get(url, -1) for url in normal], np.int64)


def pages_of(rows: Columns, time: FloatArray, merge_schemes: bool, merge_www: bool) -> Pages:
    """Find the pages of a log: one for each key of a web archive, else for each normal form.

    A page has the name that its latest row, by ``time``, has. As keys of archives have neither
    scheme nor www., signals are then found without these. Adds a note on what was merged.
    """
    url, keyed = rows.codes("url", optional=True), "urlkey" in rows
    merges = (merge_schemes or keyed, merge_www or keyed)
    texts, forms = url.texts.to_pylist(), dict[str, int]()
    of_text = np.array([forms.setdefault(normal_url(x, *merges), len(forms)) for x in texts] or [0])
    number = of_text[url.number]
    if keyed:
        key = rows.codes("urlkey", optional=True).number
        number = np.where(key < 0, number, len(forms) + key)
    coded = pa.array(number).dictionary_encode()  # in the order of first mention
    number = coded.indices.to_numpy().astype(np.int64)
    order = np.argsort(np.nan_to_num(time, nan=-np.inf), kind="stable")
    order = order[rows.good[order]]
    name, page = np.zeros(len(coded.dictionary), np.int64), np.full(len(forms), -1)
    name[number[order]] = url.number[order]
    page[of_text[url.number[order]]] = number[order]
    pairs = np.unique(number[order] * len(texts) + url.number[order])
    page_of, text_of = np.divmod(pairs, max(len(texts), 1))
    spellings = np.bincount(page_of, minlength=1)
    many = spellings[spellings > 1]
    if many.size:
        first, second = (texts[k] for k in text_of[page_of == np.argmax(spellings)][:2])
        what = f"pages with several spellings of their URL, such as {first!r} and {second!r}"
        rows.notes.append(f"{what}: {many.size} with {many.sum()} URLs")
    names = np.array([*texts, ""], np.object_)[name]
    return Pages(number, names, dict(zip(forms, page.tolist(), strict=True)), *merges)


def hosts_of(urls: Any) -> NDArray[np.object_]:
    """Return the host of each URL, in lower case; empty if it has none.

    ``urls`` are an array of strings, of NumPy or Arrow.
    """
    texts = urls if isinstance(urls, pa.Array) else pa.array(urls, pa.large_string())
    matches = pc.struct_field(pc.extract_regex(texts, HOST), "host")
    hosts: NDArray[np.object_] = pc.fill_null(pc.utf8_lower(matches), "").to_numpy(False)
    return hosts
