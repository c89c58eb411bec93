"""The grammar of revisions and targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.errors import Ambiguous, ConfigError, NotFound, RevisionSyntaxError, UsageError
from agentctl.revisions.grammar import (
    HEAD,
    At,
    Atom,
    Call,
    Head,
    Id,
    Range,
    Revision,
    Root,
    Step,
    Stop,
    Visit,
    parse_expression,
    parse_revision,
)
from agentctl.revisions.target import Target, parse_target
from agentctl.revisions.times import parse_age, parse_time

# --- revisions ---------------------------------------------------------------------------------------------------

ONE_OF_EACH: list[tuple[str, Atom, int]] = [
    ("head", Head(), 0),
    ("root", Root(), 0),
    ("9d03f8c9", Id("9d03f8c9"), 0),
    ("1f0c2b7e-6d3a-6f4e-8000-9d03f8c9aa01", Id("1f0c2b7e-6d3a-6f4e-8000-9d03f8c9aa01"), 0),
    ("checkpoint_7.a", Id("checkpoint_7.a"), 0),
    ("step:3", Step(3), 0),
    ("step:-1", Step(-1), 0),
    ("before:tools", Visit("before", "tools"), 0),
    ("before:tools:2", Visit("before", "tools", 2), 0),
    ("after:my node:-1", Visit("after", "my node", -1), 0),
    ("after:__start__", Visit("after", "__start__"), 0),
    ("call:lookup_order", Call("lookup_order"), 0),
    ("call:call_9:3", Call("call_9", 3), 0),
    ("call:functions.lookup:0", Call("functions.lookup:0"), 0),
    ('call:"functions.lookup:1"', Call("functions.lookup:1"), 0),
    ('before:"a~2"', Visit("before", "a~2"), 0),
    ('before:"a..b":2', Visit("before", "a..b", 2), 0),
    ('before:"who@work"', Visit("before", "who@work"), 0),
    ("interrupt", Stop("interrupt"), 0),
    ("interrupt:2", Stop("interrupt", 2), 0),
    ("error:-2", Stop("error", -2), 0),
    ("at:2026-11-30T14:05:30Z", At("2026-11-30T14:05:30Z"), 0),
    ("at:14:05", At("14:05"), 0),
    ("at:2h", At("2h"), 0),
    ("head~", Head(), 1),
    ("head~3", Head(), 3),
    ("before:tools:2~", Visit("before", "tools", 2), 1),
    ("at:14:05~2", At("14:05"), 2),
    ("head~0", Head(), 0),
]


@pytest.mark.parametrize(("text", "atom", "parents"), ONE_OF_EACH, ids=[row[0] for row in ONE_OF_EACH])
def test_every_atom_is_read(text: str, atom: Atom, parents: int) -> None:
    rev = parse_revision(text)
    assert (rev.atom, rev.parents, rev.span) == (atom, parents, (0, len(text)))


def test_several_tildes_add_up() -> None:
    assert parse_revision("head~~3~") == Revision(Head(), 5)


def test_ranges_have_two_or_three_dots() -> None:
    assert parse_expression("root..head~2") == Range(Revision(Root()), Revision(Head(), 2))
    both = parse_expression("2ac150ba...head")
    assert both == Range(Revision(Id("2ac150ba")), Revision(Head()), symmetric=True)


def test_the_two_sides_of_a_range_know_where_they_stood() -> None:
    rng = parse_expression("x@root..head", start=2)
    assert isinstance(rng, Range)
    assert (rng.span, rng.left.span, rng.right.span) == ((2, 12), (2, 6), (8, 12))


WRONG: list[tuple[str, str]] = [
    ("", ""),
    ("~2", "~2"),
    ("befor:tools", "befor"),
    ("before", "before"),
    ("before:", "before:"),
    ("before::2", ":2"),
    ("before:tools:x", "x"),
    ("before:tools:0", "0"),
    ("before:a:b:c", ":"),
    ("before:who@work", "@"),
    ('before:"open', '"open'),
    ('before:""', '""'),
    ('before:"a"b', "b"),
    ("step:", ""),
    ("step:two", "two"),
    ("interrupt:tools", "tools"),
    ("error:0", "0"),
    ("head:2", ":2"),
    ("HEAD", "HEAD"),
    ("at:", ""),
    ("at:yesterday", "yesterday"),
    ("at:2026-13-01", "2026-13-01"),
    ("what is this", " "),
    (".hidden", "."),
    ("head....root", "...."),
    ("..head", ".."),
    ("head..", ".."),
    ("root..head..step:2", ".."),
]


@pytest.mark.parametrize(("text", "underlined"), WRONG, ids=[row[0] or "empty" for row in WRONG])
def test_a_syntax_error_underlines_the_part_at_fault_and_says_what_is_valid(text: str, underlined: str) -> None:
    with pytest.raises(RevisionSyntaxError) as caught:
        parse_expression(f"support-17@{text}", start=len("support-17@"))
    start, end = caught.value.span
    assert (caught.value.text, caught.value.text[start:end]) == (f"support-17@{text}", underlined)
    assert start >= len("support-17@")
    assert caught.value.hint


def test_a_misspelt_atom_names_its_neighbour_and_all_atoms() -> None:
    with pytest.raises(RevisionSyntaxError) as caught:
        parse_revision("befor:tools")
    assert caught.value.hint is not None
    assert "did you mean before:tools?" in caught.value.hint
    assert "interrupt[:k]" in caught.value.hint


def test_a_range_where_one_checkpoint_is_wanted_is_a_syntax_error() -> None:
    with pytest.raises(RevisionSyntaxError, match="not a range"):
        parse_revision("root..head")


occurrences = st.none() | st.integers(1, 10**6) | st.integers(-(10**6), -1)
names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)
tricky = st.lists(st.sampled_from(["a", " ", "@", "::", ":", "~", "2", "..", ".", '"', "\\", "head"]), min_size=1)
any_name = names | tricky.map("".join)
ids = st.from_regex(r"[A-Za-z0-9_\-]([A-Za-z0-9_\-]|\.(?=[A-Za-z0-9_\-])){0,40}", fullmatch=True).filter(
    lambda text: text.lower() not in {"head", "root", "interrupt", "error", "step", "before", "after", "call", "at"}
)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.isoformat()) | st.sampled_from(
    ["14:05", "23:59:59", "2026-11-30", "2h", "1d12h", "2026-11-30T14:05+02:00"]
)
atoms: st.SearchStrategy[Atom] = st.one_of(
    st.just(Head()),
    st.just(Root()),
    ids.map(Id),
    st.integers(-(10**6), 10**6).map(Step),
    st.builds(Visit, st.sampled_from(["before", "after"]), any_name, occurrences),
    st.builds(Call, any_name, occurrences),
    st.builds(Stop, st.sampled_from(["interrupt", "error"]), occurrences),
    times.map(At),
)
revisions = st.builds(Revision, atoms, st.integers(0, 10**6))
expressions = revisions | st.builds(Range, revisions, revisions, st.booleans())


@given(expressions)
def test_a_tree_survives_being_written_and_read(tree: Revision | Range) -> None:
    assert parse_expression(str(tree)) == tree


@given(st.text(st.sampled_from('headrotbfcl:~.0123-@" x\\'), max_size=24))
def test_text_that_is_read_at_all_comes_back_as_an_equal_canonical_text(text: str) -> None:
    try:
        tree = parse_expression(text)
    except RevisionSyntaxError as error:
        start, end = error.span
        assert 0 <= start <= end <= len(text)
        return
    canonical = str(tree)
    assert parse_expression(canonical) == tree
    assert str(parse_expression(canonical)) == canonical


# --- targets -----------------------------------------------------------------------------------------------------


def threads(*known: str) -> Callable[[str, str], bool]:
    """Makes a store of `PROFILE::THREAD` or `THREAD` names."""
    places = {tuple(name.split("|", 1)) if "|" in name else ("", name) for name in known}
    return lambda profile, thread: (profile, thread) in places


def test_a_thread_alone_is_its_head() -> None:
    assert parse_target("support-17", threads("support-17")) == Target("", "support-17", HEAD, explicit=False)


def test_a_profile_is_taken_off_where_it_is_configured() -> None:
    target = parse_target("prod::support-17@before:tools:2~", threads("prod|support-17"), profiles=["prod", "debug"])
    assert target == Target("prod", "support-17", Revision(Visit("before", "tools", 2), 1))
    assert str(target) == "prod::support-17@before:tools:2~"


@pytest.mark.parametrize(
    "thread",
    ["user@example.com", "tenant::case 7", "a~2", "a b", "::x", "x::", "a@b@c", "prod", "step:3", 'say "hi"@home', "@"],
)
def test_thread_ids_may_hold_what_the_grammar_uses(thread: str) -> None:
    store = threads(thread)
    assert parse_target(thread, store, profiles=["prod"]).thread == thread
    assert parse_target(f"{thread}@step:3~", store, profiles=["prod"]) == Target("", thread, Revision(Step(3), 1))
    assert parse_target(f"{thread}@root..head", store, ranges=True).rev == Range(Revision(Root()), Revision(Head()))


def test_a_colon_pair_whose_left_is_no_profile_belongs_to_the_thread() -> None:
    assert parse_target("acme::17", threads("acme::17"), profiles=["prod"]).thread == "acme::17"


def test_two_readings_are_ambiguous_and_each_spelling_offered_has_one() -> None:
    store = threads("a", "a@head")
    with pytest.raises(Ambiguous) as caught:
        parse_target("a@head", store)
    spellings = {str(row["write"]): str(row["thread"]) for row in caught.value.candidates}
    assert spellings == {"a@head@head": "a@head", "a@head~0": "a"}
    for spelling, thread in spellings.items():
        assert parse_target(spelling, store).thread == thread
        assert spelling in str(caught.value.hint)


def test_a_named_profile_is_asked_first_and_no_other_store_where_it_has_the_thread() -> None:
    asked: list[tuple[str, str]] = []

    def is_thread(profile: str, thread: str) -> bool:
        asked.append((profile, thread))
        return (profile, thread) in {("prod", "17"), ("", "prod::17")}

    assert parse_target("prod::17", is_thread, profiles=["prod"]) == Target("prod", "17", HEAD, explicit=False)
    assert {profile for profile, _ in asked} == {"prod"}


def test_a_thread_of_the_default_store_may_begin_like_a_profile() -> None:
    store = threads("prod::17")
    assert parse_target("prod::17@root", store, profiles=["prod"]) == Target("", "prod::17", Revision(Root()))


def test_a_default_store_that_cannot_be_opened_does_not_hide_that_the_profile_lacks_the_thread() -> None:
    def is_thread(profile: str, thread: str) -> bool:
        if not profile:
            raise ConfigError("nothing says which store")
        return False

    with pytest.raises(NotFound, match="there is no thread 17 in prod"):
        parse_target("prod::17", is_thread, profiles=["prod"])
    with pytest.raises(ConfigError):
        parse_target("17", is_thread, profiles=["prod"])


def test_literal_takes_the_whole_text_as_the_thread() -> None:
    store = threads("a", "a@head", "prod|17", "prod::17")
    assert parse_target("a@head", store, literal=True) == Target("", "a@head", HEAD, explicit=False)
    assert parse_target("prod::17", store, profiles=["prod"], literal=True).thread == "prod::17"
    with pytest.raises(NotFound):
        parse_target("a@root", store, literal=True)


def test_a_real_thread_with_a_bad_revision_is_a_syntax_error_in_the_whole_text() -> None:
    with pytest.raises(RevisionSyntaxError) as caught:
        parse_target("prod::support-17@befor:tools", threads("prod|support-17"), profiles=["prod"])
    error = caught.value
    assert error.text[slice(*error.span)] == "befor"


def test_an_unknown_thread_is_not_found_with_the_command_that_lists_them() -> None:
    with pytest.raises(NotFound, match="support-18") as caught:
        parse_target("prod::support-18@head", threads("prod|support-17"), profiles=["prod"])
    assert caught.value.hint == "agentctl threads prod::"


def test_an_unknown_profile_is_named_with_its_neighbour() -> None:
    with pytest.raises(NotFound) as caught:
        parse_target("prdo::support-17", threads("prod|support-17"), profiles=["prod", "debug"])
    assert caught.value.hint == "prdo is no profile; did you mean prod::support-17?"


def test_a_run_id_given_as_a_thread_names_its_thread() -> None:
    def find_run(profile: str, run_id: str) -> list[str]:
        return ["support-17"] if (profile, run_id) == ("prod", "run-9") else []

    for text in ("prod::run-9", "prod::run-9@head~2"):
        with pytest.raises(NotFound, match=r"run-9 is a run.*support-17") as caught:
            parse_target(text, threads("prod|support-17"), profiles=["prod"], find_run=find_run)
        assert caught.value.hint == "agentctl history prod::support-17"


def test_an_empty_target_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        parse_target("", threads())


def test_a_target_that_is_a_range_has_no_single_revision() -> None:
    target = parse_target("t@root..head", threads("t"), ranges=True)
    with pytest.raises(UsageError):
        _ = target.one


thread_ids = st.lists(
    st.sampled_from(["a", "b", "@", "::", " ", "~", "~2", "head", "@head", "..", "prod", ":", '"', "step:3", "é"]),
    min_size=1,
    max_size=6,
).map("".join)


@given(st.sets(thread_ids, min_size=1, max_size=4), revisions, st.data())
def test_a_target_is_read_back_or_refused_with_spellings_that_work(
    known: set[str], rev: Revision, data: st.DataObject
) -> None:
    thread = data.draw(st.sampled_from(sorted(known)))
    store = threads(*(f"|{name}" for name in known))
    text = str(Target("", thread, rev))
    try:
        target = parse_target(text, store, profiles=["prod"])
    except Ambiguous as error:
        spelled = [row for row in error.candidates if row["thread"] == thread and row["revision"] == str(rev)]
        assert len(spelled) == 1
        write = str(spelled[0]["write"])
        if not write.startswith("--literal "):
            again = parse_target(write, store, profiles=["prod"])
            assert (again.thread, again.one.atom) == (thread, rev.atom)
    else:
        assert (target.thread, target.rev) == (thread, rev)


# --- times -------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-29", datetime(2026, 11, 29), datetime(2026, 11, 29, 23, 59, 59, 999999)),
        ("2026-11-29T10:05", datetime(2026, 11, 29, 10, 5), datetime(2026, 11, 29, 10, 5, 59, 999999)),
        ("2026-11-29 10:05:07", datetime(2026, 11, 29, 10, 5, 7), datetime(2026, 11, 29, 10, 5, 7, 999999)),
        ("2026-11-29T10:05:07.25Z", datetime(2026, 11, 29, 10, 5, 7, 250000), None),
        ("2026-11-29t10:05:07z", datetime(2026, 11, 29, 10, 5, 7), datetime(2026, 11, 29, 10, 5, 7, 999999)),
        ("2026-11-29T10:05:07+02:00", datetime(2026, 11, 29, 8, 5, 7), datetime(2026, 11, 29, 8, 5, 7, 999999)),
        ("13:59", datetime(2026, 11, 30, 13, 59), datetime(2026, 11, 30, 13, 59, 59, 999999)),
        ("14:01", datetime(2026, 11, 29, 14, 1), datetime(2026, 11, 29, 14, 1, 59, 999999)),
        ("2h", datetime(2026, 11, 30, 12), None),
        ("3d", datetime(2026, 11, 27, 14), None),
        ("1h30m", datetime(2026, 11, 30, 12, 30), None),
    ],
)
def test_a_time_covers_all_that_it_names(text: str, start: datetime, end: datetime | None) -> None:
    assert parse_time(text, NOW) == start.replace(tzinfo=UTC)
    assert parse_time(text, NOW, end=True) == (end or start).replace(tzinfo=UTC)


def test_times_are_utc_whatever_the_clock_says() -> None:
    berlin = NOW.astimezone(timezone(timedelta(hours=1)))
    assert parse_time("13:59", berlin) == parse_time("13:59", NOW)


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "25:00", "2h ago", "9999999999999d", "2026-11-30T14"])
def test_what_is_no_time_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_time(text, NOW)
    assert "14:05" in str(caught.value.hint)


def test_an_age_is_a_number_with_a_unit() -> None:
    assert parse_age("1w2d") == timedelta(days=9)
    with pytest.raises(UsageError):
        parse_age("9")


# --- the documentation -------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs" / "revisions.md"
SHOWN = [shlex.split(line)[0] for line in DOCS.read_text().splitlines() if re.match(r"'?(prod::)?support-17", line)]


@pytest.mark.parametrize("text", SHOWN)
def test_the_targets_of_the_documentation_are_read(text: str) -> None:
    store = threads("support-17", "prod|support-17")
    target = parse_target(text, store, profiles=["prod"], ranges=True)
    assert target.thread == "support-17"
    assert str(target) == text


def test_the_documentation_shows_every_atom() -> None:
    text = DOCS.read_text()
    atoms = ["head", "root", "step:N", "before:NODE", "after:NODE", "call:NAME_OR_ID", "interrupt", "error", "at:TIME"]
    assert [atom for atom in atoms if f"| `{atom}` |" not in text] == []
    assert len(SHOWN) >= 10
