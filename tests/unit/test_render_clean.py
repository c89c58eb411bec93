"""Stored text made safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.codec.secrets import hide_secrets, hide_secrets_in
from agentctl.render.clean import clean, cut, without_controls

ESC = "\x1b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢 🙂", "plain é 漢 🙂"),
        (f"{ESC}[31mred{ESC}[0m", "red"),
        (f"{ESC}]0;title\x07after", "after"),
        (f"{ESC}]8;;http://x{ESC}\\link{ESC}]8;;{ESC}\\", "link"),
        (f"{ESC}]52;c;never closed", "52;c;never closed"),
        (f"{ESC}Pdevice{ESC}\\text", "text"),
        ("\x9b31mred", "red"),
        ("a\x00b\x7fc", "a\ufffdb\ufffdc"),
        ("one\ntwo\tthree", "one two three"),
        ("two  spaces", "two  spaces"),
        ("\u202eevil\u202c", "\ufffdevil\ufffd"),
        ("zero\u200bwidth \u2060 tag\U000e0041", "zero\ufffdwidth \ufffd tag\ufffd"),
        (
            "joined \U0001f469\u200d\U0001f680 \u0645\u06cc\u200c\u062e",
            "joined \U0001f469\u200d\U0001f680 \u0645\u06cc\u200c\u062e",
        ),
        ("half \ud83d", "half \ufffd"),
        ("[/foo] :smile:", "[/foo] :smile:"),
        (f"{ESC}", ""),
    ],
)
def test_what_is_left_of_a_text(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_newlines_and_tabs_stay_where_they_are_wanted() -> None:
    assert clean("one\r\ntwo\tthree\rfour", keep_newlines=True) == "one\ntwo\tthree\ufffdfour"


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_a_terminal_obeys_is_left_of_any_text(text: str) -> None:
    for kept in (clean(text), clean(text, keep_newlines=True), without_controls(text)):
        assert not any(
            (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in kept
        )
    assert len(without_controls(text)) == len(text)
    assert "\n" not in clean(text) and "\t" not in clean(text)


@given(st.text(), st.integers(4, 40))
def test_a_cut_text_fits_and_says_that_it_is_cut(text: str, width: int) -> None:
    shown = cut(text, width)
    assert len(shown) <= width
    assert shown == clean(text) or shown.endswith("...")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://bob:pw@db/x", "postgresql://bob:***@db/x"),
        ("see https://a:b@c and redis://:pw@d", "see https://a:***@c and redis://:***@d"),
        ("key sk-abcdefghijklmnop1234", "key ***"),
        ("svc_v2+x://bob:pw@db/x", "svc_v2+x://bob:***@db/x"),
        ("no secret: http://db/x at 12:30", "no secret: http://db/x at 12:30"),
    ],
)
def test_secrets_in_text_are_hidden(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown


def test_secrets_in_metadata_are_hidden_at_any_depth() -> None:
    metadata = {"api_key": 1, "user_id": "u", "deep": [{"Authorization": "x", "url": "http://a:b@c"}]}
    assert hide_secrets_in(metadata) == {
        "api_key": "***",
        "user_id": "u",
        "deep": [{"Authorization": "***", "url": "http://a:***@c"}],
    }


@pytest.mark.parametrize("part", ["a.", "://x:", "a://x:", "sk-", "-", "\x1b]", "\x1b[;", "AKIA"])
def test_texts_made_to_be_slow_are_not(part: str) -> None:
    """A pattern that goes over the rest of the text at each place would take minutes here."""
    text = part * (2_000_000 // len(part))
    hide_secrets(text)
    clean(text)
