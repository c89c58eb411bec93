"""One spelling for each address of the web, and none for what only looks like one."""

from __future__ import annotations

import string
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphs.research_report.web.pages import Unreadable, Why, source_id
from graphs.research_report.web.urls import MAX_URL_CHARS, literal_address, normalise, resolved

SPELLINGS = {
    "HTTPS://Stats.Example/A": "https://stats.example/A",
    "https://stats.example": "https://stats.example/",
    "https://stats.example:443/": "https://stats.example/",
    "http://stats.example:80/": "http://stats.example/",
    "http://stats.example:443/": "http://stats.example:443/",
    "https://stats.example./": "https://stats.example/",
    "https://stats.example/a#part": "https://stats.example/a",
    "https://stats.example/a?": "https://stats.example/a",
    "https://stats.example/a/./b/../c": "https://stats.example/a/c",
    "https://stats.example/../../a/": "https://stats.example/a/",
    "https://stats.example/a/..": "https://stats.example/",
    "https://stats.example/%7ea%2fb%c3%a9": "https://stats.example/~a%2Fb%C3%A9",
    "https://stats.example/été": "https://stats.example/%C3%A9t%C3%A9",
    "https://stats.example/100%": "https://stats.example/100%25",
    "https://stats.example/?b=2&a=1": "https://stats.example/?b=2&a=1",
    "https://stats.example/?a=1&utm_source=x&b=2&UTM_Campaign=y": "https://stats.example/?a=1&b=2",
    "https://stats.example/?gclid=1&fbclid=2&msclkid=3&mc_eid=4": "https://stats.example/",
    "https://stats.example/?%75tm_source=x": "https://stats.example/",
    "https://stats.example/?utmost=1&reference=2": "https://stats.example/?utmost=1&reference=2",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "  https://stats.example/ ": "https://stats.example/",
    "http://[2001:DB8::1]:8080/": "http://[2001:db8::1]:8080/",
}
LOOPBACK = (
    "2130706433",
    "0x7f000001",
    "0X7F.1",
    "017700000001",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127。0。0。1",
    "１２７.0.0.1",
    "%31%32%37.0.0.1",
    "0x7f.0.0x1",
)
NOT_ADDRESSES = (
    "256.0.0.1",
    "1.2.3.4.5",
    "127.0.0.08",
    "4294967296",
    "0x100000000",
    "1.16777216",
    "a.0x7f",
    "1..2",
)


@pytest.mark.parametrize(("spelled", "normal"), SPELLINGS.items())
def test_a_url_has_one_spelling(spelled: str, normal: str) -> None:
    assert normalise(spelled) == normal
    assert normalise(normal) == normal


@pytest.mark.parametrize("host", LOOPBACK)
def test_an_ipv4_address_has_one_spelling_however_it_is_written(host: str) -> None:
    assert normalise(f"http://{host}/") == "http://127.0.0.1/"


@pytest.mark.parametrize(
    ("host", "normal"),
    {
        "::ffff:127.0.0.1": "::ffff:127.0.0.1",
        "0:0:0:0:0:0:0:1": "::1",
        "64:FF9B::7f00:1": "64:ff9b::7f00:1",
        "0::": "::",
    }.items(),
)
def test_an_ipv6_address_has_one_spelling(host: str, normal: str) -> None:
    assert normalise(f"http://[{host}]/") == f"http://[{ip_address(normal)}]/"


@pytest.mark.parametrize("host", NOT_ADDRESSES)
def test_a_host_that_ends_in_a_number_is_an_address_or_nothing(host: str) -> None:
    with pytest.raises(Unreadable, match=r"^url: "):
        normalise(f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://stats.example/",
        "file:///etc/passwd",
        "gopher://stats.example/",
        "data:text/html,hello",
        "javascript:alert(1)",
        "stats.example/a",
        "//stats.example/a",
        "",
        "https://",
        "https:///a",
        "https://user@stats.example/",
        "https://stats.example:secret@127.0.0.1/",
        "https://stats.example\\@127.0.0.1/",
        "https://stats.example/a b",
        "https://stats.example/a\r\nHost: other.example",
        "https://stats.example\x00.evil.example/",
        "https://stats.example:99999/",
        "https://stats.example:port/",
        "https://[::1/",
        "https://[::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://a..example/",
        "https://-a.example/",
        f"https://stats.example/{'a' * MAX_URL_CHARS}",
    ],
)
def test_what_is_no_url_of_the_web_is_refused(url: str) -> None:
    with pytest.raises(Unreadable) as refused:
        normalise(url)
    assert refused.value.why is Why.URL


def test_a_redirect_may_name_a_part_of_a_url() -> None:
    base = "https://stats.example/a/b?c=1"
    assert resolved(base, "d?e=1#f") == "https://stats.example/a/d?e=1"
    assert resolved(base, "//other.example") == "https://other.example/"
    assert resolved(base, "?x=1") == "https://stats.example/a/b?x=1"


@pytest.mark.parametrize(
    "target", ["http://[", "http:", "mailto:a@b.example", "http://a@127.0.0.1/", "http://1.2.3/\\"]
)
def test_a_redirect_to_what_is_no_url_is_refused(target: str) -> None:
    with pytest.raises(Unreadable):
        resolved("https://stats.example/", target)


@given(st.text(max_size=60) | st.text("htps:/.@[]%0123456789abcdefx?#&=\\ ", max_size=60).map("http:/".__add__))
def test_any_text_is_a_url_in_one_spelling_or_is_refused(text: str) -> None:
    try:
        normal = normalise(text)
    except Unreadable as refused:
        assert refused.why is Why.URL
        return
    assert normalise(normal) == normal
    assert normal.isascii() and "#" not in normal and "@" not in urlsplit(normal).netloc


_ESCAPES = st.sampled_from(["%20", "%2F", "%3f", "é", "%C3%A9", "+", "..", ".", "%", "~", "%7E", ";", "a=b"])


@given(st.lists(_ESCAPES | st.text(string.ascii_letters, min_size=1, max_size=5), max_size=6))
def test_paths_and_queries_keep_their_spelling(parts: list[str]) -> None:
    normal = normalise(f"https://stats.example/{'/'.join(parts)}?{'&'.join(parts)}")
    assert normalise(normal) == normal


@given(st.integers(0, 2**32 - 1), st.data())
def test_every_spelling_of_an_ipv4_address_is_read_as_it(number: int, data: st.DataObject) -> None:
    octets = list(number.to_bytes(4))
    n_parts = data.draw(st.integers(1, 4))
    numbers = [*octets[: n_parts - 1], int.from_bytes(bytes(octets[n_parts - 1 :]))]
    forms = data.draw(
        st.lists(st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0{:o}"]), min_size=n_parts, max_size=n_parts)
    )
    host = ".".join(form.format(each) for form, each in zip(forms, numbers, strict=True))
    assert literal_address(host) == ip_address(number)


@given(
    st.text(string.ascii_lowercase, min_size=1, max_size=10), st.text(string.ascii_lowercase, min_size=1, max_size=10)
)
def test_a_source_has_one_id_by_its_address(one: str, other: str) -> None:
    assume(one != other)
    assert source_id(normalise(f"https://{one}.example")) == source_id(normalise(f"HTTPS://{one}.example:443/#x"))
    assert source_id(f"https://{one}.example/") != source_id(f"https://{other}.example/")
