"""Fetching a page: robots, redirects, what answers mean, and bounds in time and size."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator
from itertools import repeat

import pytest

from graphs.research_report.web.downloading import Answer
from graphs.research_report.web.fetching import Fetcher, Limits
from graphs.research_report.web.pages import Unreadable, Why, text_sha256
from tests.support.web import (
    NOT_FOUND,
    PUBLIC,
    TEXT,
    TODAY,
    Answers,
    Wire,
    fetched,
    html,
    http,
    moved,
    page,
    wired,
)

URL = "https://a.example/x"
ROBOTS = "https://a.example/robots.txt"
NAMES = {"a.example": [PUBLIC]}


def rules(*lines: str) -> Answer:
    return page("\n".join(lines).encode(), content_type="text/plain")


def test_a_page_is_read_with_what_it_declares() -> None:
    head = (
        '<meta property="og:title" content="Points, 2026"><meta property="og:site_name" content="Statistics">'
        '<meta property="article:published_time" content="2026-03-12T08:00:00+01:00">'
    )
    document = fetched(f"{URL}?utm_source=y#z", {URL: page(html(head=head))}).document()
    assert document == {
        "source_id": document["source_id"],
        "url": URL,
        "title": "Points, 2026",
        "publisher": "Statistics",
        "type": "article",
        "accessed_on": TODAY.isoformat(),
        "published_on": "2026-03-12",
        "text": TEXT,
        "text_sha256": text_sha256(TEXT),
        "readable": True,
        "reason": None,
        "duplicate_of": None,
        "is_cut": False,
    }


@pytest.mark.parametrize(
    ("status", "reason"),
    {
        401: "blocked: HTTP 401",
        402: "paywall: HTTP 402",
        403: "blocked: HTTP 403",
        404: "gone: HTTP 404",
        410: "gone: HTTP 410",
        429: "blocked: HTTP 429",
        451: "blocked: HTTP 451",
        500: "unavailable: HTTP 500",
        503: "unavailable: HTTP 503",
        304: "unavailable: HTTP 304",
    }.items(),
)
def test_a_status_that_is_no_success_makes_a_page_unreadable(status: int, reason: str) -> None:
    document = fetched(URL, {URL: page(status=status)}).document()
    assert (document["readable"], document["reason"], document["url"]) == (False, reason, URL)
    assert (document["text"], document["text_sha256"], document["type"]) == ("", None, "unknown")


def test_redirects_are_followed_to_the_page_and_its_address_is_the_last() -> None:
    web = {
        "http://a.example/old": moved("https://a.example/older", 301),
        "https://a.example/older": moved("../x?utm_medium=m#top", 308),
        URL: page(),
    }
    read = fetched("http://a.example/old", web)
    assert (read.url, read.text) == (URL, TEXT)
    assert read.source_id == fetched(URL, web).source_id


def test_redirects_end_after_some() -> None:
    chain = {f"https://a.example/{n}": moved(f"/{n + 1}") for n in range(9)}
    assert fetched("https://a.example/0", chain).reason == "redirects: it redirects more than 5 times"
    assert fetched("https://a.example/4", {**chain, "https://a.example/9": page()}).text == TEXT
    loop = Answers({URL: moved(URL)})
    assert Fetcher(loop).fetch(URL).reason == "redirects: it redirects more than 5 times"
    assert loop.asked.count(URL) == 6


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://a.example/", "javascript:alert(1)", "http://[", "http:"]
)
def test_a_redirect_out_of_the_web_is_not_followed(target: str) -> None:
    read = fetched(URL, {URL: moved(target)})
    assert (read.url, str(read.reason).partition(":")[0]) == (URL, "url")


def test_robots_txt_is_asked_once_for_each_site_and_before_any_page() -> None:
    web = Answers({URL: page(), "https://a.example/y": page(), "https://b.example/": moved(URL)})
    fetcher = Fetcher(web)
    for url in (URL, "https://a.example/y", "https://b.example/"):
        assert fetcher.fetch(url).text == TEXT
    assert web.asked == [ROBOTS, URL, "https://a.example/y", "https://b.example/robots.txt", "https://b.example/", URL]


def test_robots_txt_is_asked_again_after_an_hour() -> None:
    now = 0.0
    web = Answers({URL: page()})
    fetcher = Fetcher(web, clock=lambda: now)
    fetcher.fetch(URL)
    web.by_url = {URL: page(), ROBOTS: rules("User-agent: *", "Disallow: /")}
    now = 3599.0
    assert fetcher.fetch(URL).text == TEXT
    now = 3601.0
    assert str(fetcher.fetch(URL).reason).startswith("robots: ")


@pytest.mark.parametrize(
    ("lines", "is_allowed"),
    [
        (["User-agent: *", "Disallow: /"], False),
        (["User-agent: *", "Disallow:"], True),
        (["User-agent: *", "Disallow: /", "User-agent: agentctl-research", "Allow: /"], True),
        (["User-agent: AgentCtl-Research", "Disallow: /x"], False),
        (["User-agent: other", "Disallow: /"], True),
        (["User-agent: *", "Disallow: /", "Allow: /x"], True),
        (["User-agent: *", "Disallow: /*x$"], False),
        (["<html>not found</html>"], True),
    ],
)
def test_robots_rules_are_obeyed(lines: list[str], is_allowed: bool) -> None:
    web = Answers({URL: page(), ROBOTS: rules(*lines)})
    read = Fetcher(web).fetch(URL)
    assert (read.text is not None, URL in web.asked) == (is_allowed, is_allowed)
    assert is_allowed or read.reason == "robots: a.example does not let it be read by robots"


@pytest.mark.parametrize("status", [401, 403, 404, 429])
def test_a_site_without_rules_may_be_read(status: int) -> None:
    assert fetched(URL, {URL: page(), ROBOTS: page(status=status)}).text == TEXT


def test_a_site_whose_rules_cannot_be_had_may_not_be_read() -> None:
    web = Answers({URL: page(), ROBOTS: page(status=503)})
    assert str(Fetcher(web).fetch(URL).reason).startswith("robots: ")
    assert web.asked == [ROBOTS]


def test_rules_are_read_where_they_are_redirected_to() -> None:
    web = {
        URL: page(),
        ROBOTS: moved("/rules.txt"),
        "https://a.example/rules.txt": rules("User-agent: *", "Disallow: /x"),
    }
    assert str(fetched(URL, web).reason).startswith("robots: ")


def test_a_redirect_into_a_site_that_forbids_it_is_not_followed() -> None:
    web = Answers(
        {URL: moved("https://b.example/x"), "https://b.example/robots.txt": rules("User-agent: *", "Disallow: /")}
    )
    assert Fetcher(web).fetch(URL).reason == "robots: b.example does not let it be read by robots"
    assert "https://b.example/x" not in web.asked


def serving(*pieces: bytes) -> Wire:
    """A site without rules that answers with these bytes."""
    wire = Wire(lambda _: iter(pieces) if wire.connected[1:] else NOT_FOUND)
    return wire


def endless(head: bytes, piece: bytes) -> tuple[Wire, list[int]]:
    """A site that never stops sending; the list gets the length of each piece that was taken."""
    taken: list[int] = []

    def answer(_: str) -> Iterator[bytes]:
        if not wire.connected[1:]:
            yield from NOT_FOUND
            return
        yield head
        for each in repeat(piece):
            taken.append(len(each))
            yield each

    wire = Wire(answer)
    return wire, taken


LIMITS = Limits(max_bytes=100_000)


def test_a_body_is_not_read_beyond_the_limit() -> None:
    wire, taken = endless(http(b"")[0], b"<p>word</p>" * 1000)
    assert wired(wire, NAMES, limits=LIMITS).fetch(URL).reason == "size: it is larger than 100000 bytes"
    assert sum(taken) < 150_000


def test_a_body_that_is_announced_as_too_large_is_not_read() -> None:
    wire, taken = endless(http(b"", content_length="100001")[0], b"x")
    assert wired(wire, NAMES, limits=LIMITS).fetch(URL).reason == "size: it is larger than 100000 bytes"
    assert taken == []


def test_a_body_just_within_the_limit_is_read() -> None:
    body = html().ljust(100_000)
    assert wired(serving(*http(body)), NAMES, limits=LIMITS).fetch(URL).text == TEXT
    zipped = gzip.compress(body)
    assert wired(serving(*http(zipped, content_encoding="gzip")), NAMES, limits=LIMITS).fetch(URL).text == TEXT
    zipped = gzip.compress(body + b" ")
    reason = wired(serving(*http(zipped, content_encoding="gzip")), NAMES, limits=LIMITS).fetch(URL).reason
    assert reason == "size: it is larger than 100000 bytes"


def bare(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(html())),
        ("x-gzip", gzip.compress(html())),
        ("GZip", gzip.compress(html())),
        ("deflate", zlib.compress(html())),
        ("deflate", bare(html())),
        ("identity", html()),
    ],
    ids=["gzip", "x-gzip", "GZip", "deflate", "bare deflate", "identity"],
)
def test_bodies_are_decompressed(encoding: str, body: bytes) -> None:
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    assert wired(serving(http(b"", content_encoding=encoding)[0], *pieces), NAMES).fetch(URL).text == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_never_held_in_memory(encoding: str) -> None:
    packer = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
    bomb = b"".join(packer.compress(bytes(1_000_000)) for _ in range(50)) + packer.flush()
    fetcher = wired(serving(*http(bomb, content_encoding=encoding)), NAMES, limits=LIMITS)
    tracemalloc.start()
    try:
        assert fetcher.fetch(URL).reason == "size: it is larger than 100000 bytes"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_body_that_unpacks_to_nothing_without_end_is_not_read() -> None:
    empty_block = b"\x00\x00\x00\xff\xff"
    wire, taken = endless(http(b"", content_encoding="deflate")[0], empty_block * 200)
    assert wired(wire, NAMES, limits=LIMITS).fetch(URL).reason == "size: it is larger than 100000 bytes"
    assert sum(taken) < 150_000


def test_a_bomb_inside_a_bomb_stays_packed() -> None:
    twice = gzip.compress(gzip.compress(html()))
    assert wired(serving(*http(twice, content_encoding="gzip, gzip")), NAMES).fetch(URL).reason == (
        "type: its encoding is gzip, gzip"
    )
    assert wired(serving(*http(twice, content_encoding="br")), NAMES).fetch(URL).reason == "type: its encoding is br"


def test_a_body_that_cannot_be_decompressed_is_damaged() -> None:
    for body in (b"no gzip at all", gzip.compress(html())[:-20], gzip.compress(html())[:30] + b"x" * 40):
        read = wired(serving(*http(body, content_encoding="gzip")), NAMES).fetch(URL)
        assert str(read.reason).startswith("damaged: ")


@pytest.mark.parametrize("answer", [[b""], [b"not http\r\n\r\n"], [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]])
def test_a_server_that_does_not_speak_http_is_unavailable(answer: list[bytes]) -> None:
    assert str(wired(serving(*answer), NAMES).fetch(URL).reason).startswith("unavailable: ")


def test_a_site_that_nobody_answers_for_is_unavailable() -> None:
    wire = Wire(lambda _: NOT_FOUND, refusing=frozenset({PUBLIC}))
    assert wired(wire, NAMES).fetch(URL).reason == "unavailable: ConnectError: a.example does not answer"


@pytest.mark.parametrize("head", [http(b"")[0], b"HTTP/1.1 200 OK\r\nX: "])
def test_what_trickles_in_is_cut_off_in_time(head: bytes) -> None:
    """Each read takes a second, and brings one byte: of a body, or of a header that never ends."""
    now = 0.0
    wire, taken = endless(head, b"a")

    def clock() -> float:
        nonlocal now
        now += 0.25
        return now

    read = wired(wire, NAMES, limits=Limits(timeout_s=20), clock=clock).fetch(URL)
    assert read.reason == "timeout: the page took too long"
    assert len(taken) < 80


def test_redirects_do_not_gain_time() -> None:
    now = 0.0

    def slow(url: str, deadline: object, max_bytes: int) -> Answer:
        nonlocal now
        now += 6
        deadline.left_s()  # type: ignore[attr-defined]
        return moved(f"{url}x")

    assert Fetcher(slow, clock=lambda: now).fetch(URL).reason == "timeout: the page took too long"
    assert now == 24


def test_a_long_text_is_cut_at_a_line_and_says_so() -> None:
    lines = [f"<p>Line {n} of the register.</p>" for n in range(50)]
    read = fetched(URL, {URL: page(html("".join(lines)))}, limits=Limits(max_text_chars=100))
    assert read.is_cut
    assert (
        read.text is not None
        and read.text.splitlines()[-1] == f"Line {len(read.text.splitlines()) - 1} of the register."
    )
    assert read.document()["text_sha256"] == text_sha256(read.text)


def test_what_is_no_url_is_unreadable_and_nothing_is_asked() -> None:
    web = Answers({})
    read = Fetcher(web).fetch("file:///etc/passwd")
    assert read.reason == "url: file: only http and https are read"
    assert web.asked == []
    assert len(Fetcher(web).fetch("https://a.example/" + "a" * 100_000).url) < 3_000


def test_reasons_begin_with_their_kind() -> None:
    assert {str(Unreadable(why, "so")) for why in Why} == {f"{why.value}: so" for why in Why}
