"""Normal forms of URLs against a twin, and hosts."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.live.logs.urls import hosts_of
from policies.live.urls import normal_url
from tests.naive import urls as naive

SEGMENT = st.lists(
    st.sampled_from([*"aZ0-._~:@!", "%41", "%7e", "%2f", "%2F", "%e4", "%C3%a4", "%25", "%20"]),
    max_size=4,
).map("".join)
PATH = st.lists(st.one_of(SEGMENT, st.sampled_from([".", ".."])), max_size=5)
URLS = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "HTTP", "https", "Https"]),
    st.sampled_from(["a.example", "A.Example", "www.a-b.example", "127.0.0.1"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    PATH.map(lambda parts: "".join(f"/{part}" for part in parts)),
    st.sampled_from(["", "?a=b&c=%41+%20", "?q=%C3%a4%26", "?%7e"]),
)


@settings(max_examples=300, deadline=None)
@given(URLS)
def test_normal_forms_equal_their_twin(url):
    form = normal_url(url)
    assert form == naive.normal_url(url)
    assert normal_url(form) == form
    assert normal_url(f"{url}#part") == form


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://me@a.example/", "https://a.example/", False),
        ("http://a.example/a", "http://a.example/A", False),
        ("http://a.example/a%2Fb", "http://a.example/a/b", False),
        ("http://a.example/?a&b", "http://a.example/?b&a", False),
        ("http://a.example/x", "http://a.example/x/", False),
        ("http://[::1]:80/", "http://[::1]", True),
        ("ftp://A.example:21/", "ftp://a.example", True),
        ("http://ä.example/ö", "http://xn--4ca.example/%C3%B6", True),
    ],
)
def test_pairs(one, other, same):
    assert (normal_url(one) == normal_url(other)) == same


@pytest.mark.parametrize(
    "name", ["u", "a b", "dns:a", "mailto:A@B", "/Path%7e", "http://a:99999/", "HTTP://", "", "%41"]
)
def test_what_is_no_url_stays(name):
    assert normal_url(name) == name


def test_merging_is_an_option():
    urls = ["http://www.a.example/x", "https://www.a.example/x", "https://a.example/x"]
    assert len(set(map(normal_url, urls))) == 3
    assert [normal_url(url, merge_schemes=True) for url in urls] == [*urls[1:2] * 2, urls[2]]
    assert [normal_url(url, merge_www=True) for url in urls] == [
        "http://a.example/x",
        *urls[2:] * 2,
    ]
    assert {normal_url(url, True, True) for url in urls} == {urls[2]}


def test_hosts():
    urls = [
        "http://a.example:80/",
        "http://me:x@A.example/?@:",
        "https://[::1]:8/",
        "ftp://b",
        "no",
    ]
    assert list(hosts_of(np.array(urls, np.object_))) == [
        "a.example",
        "a.example",
        "[::1]",
        "b",
        "",
    ]


def test_fifty_thousand_urls_take_a_moment():
    urls = [f"http://www.Example{i % 50}.com:80/a/{i}/%7eb/../c?x={i}" for i in range(50_000)]
    start = time.process_time()
    assert len(set(map(normal_url, urls))) == 50_000
    assert time.process_time() - start < 5.0
