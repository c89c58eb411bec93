"""Configuration, checks and values that were written to run code, to fill the memory or never to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.codec.jsontext import MAX_DEPTH, parse
from agentctl.config import yamldocument
from agentctl.config.yamldocument import NotYaml, read_document
from agentctl.errors import UsageError
from agentctl.experiments.judging.checks import load_check, parse_inline
from agentctl.testing import run_cli

ANCHORS = 12
LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, ANCHORS))
DOCUMENTS = {
    "tag": "profiles: !!python/object/apply:os.system ['touch pwned']\n",
    "new": "profiles: {prod: {store: !!python/object/new:os.system ['touch pwned']}}\n",
    "module": "profiles: !!python/module:antigravity\n",
    "laughs": LAUGHS,
    "inside itself": "profiles: &p\n  prod: *p\n",
    "list inside itself": "profiles: {prod: {store: x, protected: &l [*l]}}\n",
    "deep list": "profiles: " + "[" * 5_000,
    "deep map": "profiles: " + "{a: " * 3_000 + "1" + "}" * 3_000,
    "huge integer": f"profiles: {{prod: {{store: {'9' * 10_000}}}}}\n",
    "no date": "profiles: {2001-13-01: {store: x}}\n",
    "no bool": "profiles: !!bool x\n",
    "no time": "profiles: {prod: {store: !!timestamp x}}\n",
    "nul": "profiles: \0\n",
    "not utf-8": "profiles: \ud800\n",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_configuration_that_is_more_than_text_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "agentctl.yaml").write_bytes(DOCUMENTS[name].encode("utf-8", "surrogatepass"))
    told = run_cli("config", "show", cwd=tmp_path)
    assert (told.code, told.out) == (4, "")
    assert told.err.startswith("error: ") and len(told.err) < 2_000
    assert [path.name for path in tmp_path.iterdir()] == ["agentctl.yaml"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_check_file_that_is_more_than_text_is_an_error(tmp_path: Path, name: str) -> None:
    text = DOCUMENTS[name].replace("profiles:", "fails_when:")
    (tmp_path / "check.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(UsageError):
        load_check(tmp_path / "check.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["check.yaml"]


def test_anchors_count_as_often_as_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &a [1, 2]\nb: [*a, *a]\n"
    assert read_document(text)[0] == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    monkeypatch.setattr(yamldocument, "MAX_NODES", 13)
    assert read_document(text)[0] == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    monkeypatch.setattr(yamldocument, "MAX_NODES", 12)
    with pytest.raises(NotYaml, match="more than 12 values"):
        read_document(text)


@pytest.mark.parametrize(
    "text", ["reply matches " + "(" * 3_000 + ")" * 3_000, "state " + "(" * 3_000 + "a" + ")" * 3_000]
)
def test_an_expression_that_is_too_deep_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_inline(text)


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "9" * 5_000])
def test_json_that_is_too_deep_or_too_large_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|digits"):
        parse(text)


def test_json_is_as_deep_as_it_is_nested_whatever_its_texts_hold() -> None:
    deepest = "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH
    assert parse(deepest) is not None
    with pytest.raises(ValueError, match="nested deeper"):
        parse(f"[{deepest}]")
    assert parse('{"a": "' + "[{" * 1_000 + '"}') == {"a": "[{" * 1_000}
    assert parse(b"[" + b"[]," * 1_000 + b"1]")[-1] == 1


@pytest.mark.parametrize("word", ["\udcff", "t@\udcff", "prod::\udcff"])
def test_a_word_that_is_not_utf_8_is_an_error_of_the_command_line(tmp_path: Path, word: str) -> None:
    import sqlite3

    sqlite3.connect(tmp_path / "t.sqlite").execute("CREATE TABLE checkpoints (thread_id TEXT)").connection.close()
    told = run_cli("history", word, "--store", tmp_path / "t.sqlite", cwd=tmp_path)
    assert told.code in (2, 3, 4) and "Traceback" not in told.err
