"""agentctl.yaml, the environment and flags: which store, and who said so."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from agentctl.config.debug import make_private_folder, sqlite_file
from agentctl.config.load import Config, load_config
from agentctl.config.places import hide_password, literal_password, locate_store, same_store
from agentctl.config.profiles import AuditRule
from agentctl.config.show import list_settings
from agentctl.config.stores import is_masked_on_copy
from agentctl.errors import ConfigError, NotFound, Refused
from agentctl.records.masking import FieldRule, MaskSettings, PatternRule

PROFILES = """
profiles:
  prod:
    store: ${PROD_URL}
    default: true
    schema: langgraph
  staging:
    store: data/staging.sqlite
    access: write
    protected: true
    retention: 90d
debug_store: sqlite:///state/debug.sqlite
"""


def config_in(folder: Path, text: str = "", env: dict[str, str] | None = None) -> Config:
    if text:
        (folder / "agentctl.yaml").write_text(text)
    return load_config(folder, {"HOME": str(folder / "home"), **(env or {})})


def refused(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config_in(folder, text)
    return caught.value


def test_without_a_file_there_is_the_debug_profile_alone_and_nothing_is_created(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    assert config.profile_names == ("debug",)
    choice = config.debug_store()
    assert (choice.url, choice.access) == (str(tmp_path / "home/.local/state/agentctl/debug.sqlite"), "write")
    assert str(choice.origin) == "default"
    assert config.store_of("debug") == choice
    assert list(tmp_path.iterdir()) == []


def test_the_debug_store_follows_xdg_state_home(tmp_path: Path) -> None:
    config = config_in(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "state")})
    assert config.debug_store().url == str(tmp_path / "state/agentctl/debug.sqlite")
    relative = config_in(tmp_path, env={"XDG_STATE_HOME": "state"})
    assert relative.debug_store().url.startswith(str(tmp_path / "home"))


def test_the_files_are_found_upward_from_the_working_folder(tmp_path: Path) -> None:
    config_in(tmp_path, PROFILES)
    (tmp_path / "langgraph.json").write_text("{}")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    config = load_config(below, {})
    assert (config.file, config.langgraph_file) == (tmp_path / "agentctl.yaml", tmp_path / "langgraph.json")
    (tmp_path / "a" / "agentctl.yaml").write_text("profiles: {near: {store: x.sqlite}}")
    assert load_config(below, {}).profile_names == ("near", "debug")


def test_relative_stores_start_at_the_files_folder(tmp_path: Path) -> None:
    config_in(tmp_path, PROFILES)
    (tmp_path / "deep").mkdir()
    config = load_config(tmp_path / "deep", {})
    assert config.store_of("staging").url == str(tmp_path / "data/staging.sqlite")
    assert config.debug_store().url == f"sqlite:///{tmp_path}/state/debug.sqlite"


@pytest.mark.parametrize(
    ("text", "located"),
    [
        ("a/b.sqlite", "/p/a/b.sqlite"),
        ("/abs/b.sqlite", "/abs/b.sqlite"),
        ("sqlite:///b.sqlite", "sqlite:////p/b.sqlite"),
        ("sqlite:////abs/b.sqlite", "sqlite:////abs/b.sqlite"),
        ("savers.py:make", "/p/savers.py:make"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        (":memory:", ":memory:"),
    ],
)
def test_only_what_names_a_file_is_made_absolute(text: str, located: str) -> None:
    assert locate_store(text, Path("/p")) == located


def test_a_home_folder_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ann")
    assert locate_store("~/b.sqlite", Path("/p")) == "/users/ann/b.sqlite"


def test_a_target_without_a_profile_is_in_flag_then_environment_then_default_profile(tmp_path: Path) -> None:
    env = {"PROD_URL": "postgresql://reader@db/prod", "AGENTCTL_STORE": "env.sqlite", "AGENTCTL_PROFILE": "staging"}
    config = config_in(tmp_path, PROFILES, env)
    flag = config.store_of(None, "flag.sqlite")
    assert (flag.url, str(flag.origin), flag.access) == (str(tmp_path / "flag.sqlite"), "flag --store", "read")
    stored = config.store_of()
    assert (stored.url, str(stored.origin)) == (str(tmp_path / "env.sqlite"), "environment AGENTCTL_STORE")
    del env["AGENTCTL_STORE"]
    assert config_in(tmp_path, PROFILES, env).store_of().profile == "staging"
    del env["AGENTCTL_PROFILE"]
    default = config_in(tmp_path, PROFILES, env).store_of()
    assert (default.url, default.profile, default.schema) == ("postgresql://reader@db/prod", "prod", "langgraph")
    assert str(default.origin) == f"file {tmp_path / 'agentctl.yaml'}:4"


def test_a_named_profile_wins_over_flag_and_environment(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES, {"AGENTCTL_STORE": "env.sqlite"})
    choice = config.store_of("staging", "flag.sqlite")
    assert (choice.profile, choice.access, choice.protected) == ("staging", "write", ("*",))


def test_the_schema_flag_wins_over_the_profiles(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES, {"PROD_URL": "postgresql://db/prod"})
    assert config.store_of("prod", schema="other").schema == "other"


def test_the_debug_store_is_flag_then_environment_then_file(tmp_path: Path) -> None:
    env = {"AGENTCTL_DEBUG_STORE": "env.sqlite"}
    config = config_in(tmp_path, PROFILES, env)
    assert str(config.debug_store("flag.sqlite").origin) == "flag --debug-store"
    assert config.debug_store().url == str(tmp_path / "env.sqlite")
    assert config.store_of("debug", "x.sqlite", debug_flag="flag.sqlite").url == str(tmp_path / "flag.sqlite")
    choice = config_in(tmp_path, PROFILES).debug_store()
    assert (choice.profile, choice.access) == ("debug", "write")
    assert str(choice.origin) == f"file {tmp_path / 'agentctl.yaml'}:12"


def test_nothing_that_says_which_store_is_an_error_with_the_ways_to_say_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing says which store") as caught:
        config_in(tmp_path, "profiles: {prod: {store: x.sqlite}}").store_of()
    for way in ("--store", "AGENTCTL_STORE", "default", "prod::THREAD"):
        assert way in str(caught.value.hint)


def test_an_unknown_profile_is_not_found_with_its_neighbour(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES)
    with pytest.raises(NotFound) as caught:
        config.store_of("stagin")
    assert caught.value.hint == "did you mean staging?"
    with pytest.raises(NotFound):
        config_in(tmp_path, PROFILES, {"AGENTCTL_PROFILE": "nope"}).store_of()


def test_copies_go_to_debug_or_to_a_profile_or_url_that_may_be_written(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES, {"PROD_URL": "postgresql://db/prod"})
    assert config.target_of().profile == "debug"
    assert config.target_of("staging").access == "write"
    url = config.target_of("other.sqlite", schema="s")
    other = str(tmp_path / "other.sqlite")
    assert (url.url, url.access, url.schema, str(url.origin)) == (other, "write", "s", "flag --to")
    for prod in ("prod", "postgresql://db/prod"):
        with pytest.raises(Refused, match="prod has access: read"):
            config.target_of(prod)


def test_a_store_given_by_its_address_keeps_the_rule_of_its_profile_about_copies(tmp_path: Path) -> None:
    config = config_in(tmp_path, "profiles: {prod: {store: data/prod.sqlite, mask: always}}")
    for flag in ("data/prod.sqlite", f"sqlite:///{tmp_path}/data/prod.sqlite"):
        assert is_masked_on_copy(config.store_of(None, flag), None)
    assert not is_masked_on_copy(config.store_of(None, "data/other.sqlite"), None)


def test_cases_lie_beside_the_debug_store(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    assert config.cases_root(config.debug_store()) == tmp_path / "home/.local/state/agentctl/cases"
    assert config.cases_root(config.debug_store("x/d.sqlite")) == tmp_path / "x/cases"
    assert config.cases_root(config.debug_store("sqlite:////y/d.sqlite")) == Path("/y/cases")
    postgres = config.debug_store("postgresql://db/debug")
    assert config.cases_root(postgres) == tmp_path / "home/.local/state/agentctl/cases"


def test_a_missing_variable_matters_only_to_the_profile_that_needs_it_and_is_named(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES)
    assert config.store_of("staging").url.endswith("staging.sqlite")
    with pytest.raises(ConfigError, match="PROD_URL is not set, and profile prod") as caught:
        config.store_of("prod")
    assert caught.value.hint == "export PROD_URL=..."
    with pytest.raises(ConfigError, match="PROD_URL"):
        config_in(tmp_path, PROFILES, {"PROD_URL": ""}).store_of("prod")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:hunter2@db/prod",
        "postgresql://reader:${PART}2@db/prod",
        "postgresql://reader:p@ss/w@db/prod",
        "postgresql://reader@db/prod?sslmode=require&password=hunter2",
        "postgresql:///prod?user=r&sslpassword=hunter2",
    ],
)
def test_a_password_in_the_file_is_an_error_that_does_not_repeat_it(tmp_path: Path, url: str) -> None:
    error = refused(tmp_path, f"profiles: {{prod: {{store: '{url}'}}}}")
    assert "profiles.prod.store holds a password" in error.message
    assert "hunter2" not in f"{error.message} {error.hint}"
    assert "holds a password" in refused(tmp_path, f"debug_store: '{url}'").message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:${PW}@db/prod",
        "postgresql://${USER}:${PW}@db/prod",
        "postgresql://reader@db:5432/prod",
        "postgresql://db/prod?password=${PW}",
        "postgresql:///prod?host=/run/postgresql",
        "${URL}",
        "x.sqlite",
    ],
)
def test_a_password_by_variable_or_none_at_all_is_fine(tmp_path: Path, url: str) -> None:
    assert not literal_password(url)
    assert config_in(tmp_path, f"profiles: {{prod: {{store: '{url}'}}}}").profiles["prod"].store == url


def test_passwords_are_hidden_wherever_a_choice_is_shown(tmp_path: Path) -> None:
    config = config_in(tmp_path, PROFILES, {"PROD_URL": "postgresql://r:hunter2@db/prod?password=hunter2"})
    choice = config.store_of("prod")
    assert choice.shown == "postgresql://r:***@db/prod?password=***"
    assert "hunter2" not in repr(choice) + repr(config)
    assert hide_password("postgresql://r@db/prod") == "postgresql://r@db/prod"


WRONG = [
    ("profile: {}", ":1: unknown key profile", "did you mean profiles?"),
    (
        "profiles:\n  prod:\n    store: x\n    acess: read",
        ":4: unknown key profiles.prod.acess",
        "did you mean access?",
    ),
    ("profiles: {prod: {store: x, colour: red}}", "unknown key profiles.prod.colour", "keys are: access"),
    ("profiles: {prod: {store: x, access: maybe}}", "must be read or write, not maybe", None),
    ("profiles: {prod: {store: x, default: 1}}", "must be true or false", None),
    ("profiles: {prod: {store: 7}}", "must be a text", None),
    ("profiles: {prod: {}}", "profile prod has no store", None),
    ("profiles: {prod: x.sqlite}", "profiles.prod must be a mapping", None),
    ("profiles: {'a::b': {store: x}}", "cannot name a profile", None),
    ("profiles: {prod: {store: x, ticket: sure}}", "must be required or optional", None),
    ("profiles: {prod: {store: x, mask: sometimes}}", "must be always or never", None),
    ("profiles: {debug: {ticket: required}}", "ticket is for stores of others", None),
    ("profiles: {prod: {store: x, protected: [1]}}", "protected must be a text or a list of texts", None),
    ("profiles: {prod: {store: x, retention: long}}", "retention must be an age", "90d"),
    ("profiles: {debug: {access: read}}", "profiles.debug.access must be write", None),
    ("profiles: {a: {store: x, default: true}, b: {store: y, default: true}}", "a and b are both marked", None),
    ("profiles:\n  a: {store: x}\n  a: {store: y}", ":3: profiles.a was given in line 2 already", None),
    ("profiles: {prod: {store: '${URL:-x}'}}", "${URL:-x} is no variable", None),
    ("debug_store: x\nprofiles: {debug: {store: y}}", "both say where the debug store is", None),
    ("workflows: {w: {graph: a.py:g, tools: x}}", "unknown key workflows.w.tools", "keys are: checks"),
    ("workflows: {w: {sandbox: a.py:g}}", "workflow w has no graph", None),
    ("workflows: {w: {graph: a.py}}", "must be path.py:attr", None),
    ("workflows: {w: {graph: a.py:g, checks: [1]}}", "must be a text or a list of texts", None),
    ("1: x", "the key 1 must be a text", None),
    ("- a", "must be a mapping", None),
    ("a: [", ":1: not YAML", None),
    ("a: \x00", "not YAML", None),
]


@pytest.mark.parametrize(("text", "message", "hint"), WRONG, ids=[row[1] for row in WRONG])
def test_what_is_wrong_in_the_file_is_named_with_its_line(
    tmp_path: Path, text: str, message: str, hint: str | None
) -> None:
    error = refused(tmp_path, text)
    assert str(tmp_path / "agentctl.yaml") in error.message
    assert message in error.message
    assert hint is None or hint in str(error.hint)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "profiles:\n", "profiles: {}\nworkflows:\n"])
def test_an_empty_file_or_section_is_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "agentctl.yaml").write_text(text)
    assert load_config(tmp_path, {}).profile_names == ("debug",)


def test_a_profile_asks_for_a_ticket_however_its_store_is_named(tmp_path: Path) -> None:
    text = "profiles: {prod: {store: x.sqlite, ticket: required}, log: {store: y.sqlite, audit: true}}"
    config = config_in(tmp_path, text)
    (tmp_path / "x.sqlite").touch()
    (tmp_path / "link.sqlite").symlink_to("x.sqlite")
    for choice in (
        config.store_of("prod"),
        config.store_of(None, "x.sqlite"),
        config.store_of(None, "sqlite:///x.sqlite"),
        config.store_of(None, "../" + tmp_path.name + "/x.sqlite"),
        config.store_of(None, "link.sqlite"),
    ):
        assert choice.audit == AuditRule("prod", ticket=True)
    assert config.store_of("log").audit == AuditRule("log", ticket=False)
    assert config.store_of(None, "z.sqlite").audit is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://a:x@db/agents", "postgresql://b@DB:5432/agents?sslmode=require", True),
        ("postgresql://a@db/agents", "postgres://db/agents", True),
        ("postgresql:///agents?host=db", "postgresql://db/agents", True),
        ("postgresql://a@db/agents", "postgresql://a@db/others", False),
        ("postgresql://a@db/agents", "postgresql://a@db:5433/agents", False),
        ("https://agents.example/", "https://agents.example:443", True),
        ("/data/x.sqlite", "postgresql://db/agents", False),
        ("/data/x.py:saver", "/data/x.py:saver", True),
    ],
)
def test_a_store_is_the_same_whoever_logs_in(one: str, other: str, same: bool) -> None:
    assert same_store(one, other) is same


def test_the_debug_store_is_never_one_that_is_only_read(tmp_path: Path) -> None:
    config = config_in(tmp_path, "profiles: {prod: {store: x.sqlite}, work: {store: y.sqlite, access: write}}")
    with pytest.raises(Refused, match="store of profile prod, which has access: read"):
        config.debug_store("x.sqlite")
    with pytest.raises(Refused, match="AGENTCTL_DEBUG_STORE"):
        config_in(tmp_path, "profiles: {prod: {store: x.sqlite}}", {"AGENTCTL_DEBUG_STORE": "x.sqlite"}).debug_store()
    assert config.debug_store("y.sqlite").access == "write"


def test_another_login_of_a_database_is_no_profile_but_keeps_its_ticket(tmp_path: Path) -> None:
    text = """
profiles:
  prod: {store: "postgresql://reader@db/agents", ticket: required}
  live: {store: "postgresql://runner@db/agents", access: write}
"""
    config = config_in(tmp_path, text)
    assert config.target_of("postgresql://runner@db/agents").profile == "live"
    with pytest.raises(Refused, match="profile prod has access: read"):
        config.target_of("postgresql://reader@db/agents?sslmode=require")
    for choice in (
        config.target_of("postgresql://debugger@db/agents", schema="debug"),
        config.debug_store("postgresql://debugger@db/agents"),
        config.store_of(None, "postgresql://debugger@db/agents"),
    ):
        assert choice.audit == AuditRule("prod", ticket=True)


def test_protected_patterns_match_whole_thread_ids(tmp_path: Path) -> None:
    config = config_in(
        tmp_path, "profiles: {a: {store: x, protected: ['vip-*', chat]}, b: {store: y, protected: true}, c: {store: z}}"
    )
    held = config.store_of("a")
    assert [held.protects(thread) for thread in ("vip-1", "chat", "chat-2", "x-vip-1")] == [True, True, False, False]
    assert config.store_of("b").protects("anything")
    assert not config.store_of("c").protects("anything")


def test_nothing_is_copied_unmasked_out_of_a_profile_whose_copies_must_be_masked(tmp_path: Path) -> None:
    config = config_in(tmp_path, "profiles: {prod: {store: x.sqlite, mask: always}, open: {store: y.sqlite}}")
    prod, others = config.store_of("prod"), (config.store_of("open"), config.store_of(None, "z.sqlite"))
    assert is_masked_on_copy(prod, None)
    assert is_masked_on_copy(prod, True)
    with pytest.raises(Refused, match="prod has mask: always"):
        is_masked_on_copy(prod, False)
    for other in others:
        assert [is_masked_on_copy(other, said) for said in (None, True, False)] == [False, True, False]
        assert is_masked_on_copy(other, None, unsaid=True)


MASKING = """\
masking:
  fields:
    loyalty_no: other
    customer.nickname: name
  patterns:
    badge: 'B-\\d{6}'
    plate: {regex: '[A-Z]{1,3}-[A-Z]{2} \\d{1,4}', kind: other}
  never: [ticket_id]
  regions: [DE, US]
"""


def test_masking_has_rules_of_its_own(tmp_path: Path) -> None:
    assert config_in(tmp_path).masking == MaskSettings()
    config = config_in(tmp_path, MASKING)
    assert config.masking == MaskSettings(
        (FieldRule("loyalty_no", "other"), FieldRule("customer.nickname", "name")),
        (PatternRule("badge", r"B-\d{6}"), PatternRule("plate", r"[A-Z]{1,3}-[A-Z]{2} \d{1,4}")),
        ("ticket_id",),
        ("DE", "US"),
    )
    shown = {setting.key: setting.value for setting in list_settings(config)}
    assert shown["masking.fields.customer.nickname"] == "name"
    assert shown["masking.patterns.badge"] == r"other: B-\d{6}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("masking:\n  field: {}", ":2: unknown key masking.field"),
        ("masking:\n  fields:\n    vip: person", ":3: masking.fields.vip must be name or address or"),
        ("masking:\n  patterns:\n    a: ok\n    b: '(x'", ":4: masking.patterns.b is no regular expression"),
        ("masking:\n  patterns: {b: {regex: 'x*'}}", ":2: masking.patterns.b.regex matches empty text"),
        ("masking:\n  patterns: {b: {kind: name}}", ":2: masking.patterns.b has no regex"),
        ("masking:\n  regions: [Germany]", ":2: masking.regions are countries in two capital letters, not Germany"),
        ("masking: [x]", "masking must be a mapping"),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_in(tmp_path, text)


def test_the_key_of_masking_lies_beside_the_debug_store_and_is_never_shown(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    state = tmp_path / "home/.local/state/agentctl"
    assert config.mask_key_file(config.debug_store()) == state / "debug.sqlite.mask-key"
    assert config.mask_key_file(config.debug_store("x/d.sqlite")) == tmp_path / "x/d.sqlite.mask-key"
    assert config.mask_key_file(config.debug_store("postgresql://db/debug")) == state / "mask-key"
    given = config_in(tmp_path, "", {"AGENTCTL_MASK_KEY": "swordfish swordfish"})
    assert "swordfish" not in str(list_settings(given))


def test_config_show_lists_every_setting_with_its_origin(tmp_path: Path) -> None:
    text = f"{PROFILES}\nworkflows:\n  refunds:\n    graph: g.py:build\n    checks: [a.yaml, reply contains no]\n"
    config = config_in(tmp_path, text, {"AGENTCTL_STORE": "postgresql://r:hunter2@db/prod"})
    shown = {(setting.key, setting.value): str(setting.origin) for setting in list_settings(config)}
    assert shown["store", "postgresql://r:***@db/prod"] == "environment AGENTCTL_STORE"
    assert shown["profiles.prod.store", "${PROD_URL}"].startswith(f"file {tmp_path / 'agentctl.yaml'}:")
    assert ("profiles.staging.protected", "true") in shown
    assert ("workflows.refunds.graph", f"{tmp_path}/g.py:build") in shown
    assert ("workflows.refunds.checks", "reply contains no") in shown
    assert not any("hunter2" in value for _, value in shown)


def test_config_show_names_what_is_built_in(tmp_path: Path) -> None:
    shown = {setting.key: (setting.value, str(setting.origin)) for setting in list_settings(config_in(tmp_path))}
    assert shown["store"] == ("none", "default")
    assert shown["debug_store"] == (str(tmp_path / "home/.local/state/agentctl/debug.sqlite"), "default")
    chosen = config_in(tmp_path, env={"AGENTCTL_PROFILE": "debug", "AGENTCTL_DEBUG_STORE": "d.sqlite"})
    shown = {setting.key: (setting.value, str(setting.origin)) for setting in list_settings(chosen)}
    assert shown["store"] == ("debug::", "environment AGENTCTL_PROFILE")
    assert shown["debug_store"] == ("d.sqlite", "environment AGENTCTL_DEBUG_STORE")


def test_private_folders_are_for_their_owner_alone_and_others_stay_as_they_are(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")]
    assert modes == [0o755, 0o700, 0o700]
    make_private_folder(tmp_path / "a")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("a.sqlite", Path("a.sqlite")),
        ("sqlite:////x/a.sqlite", Path("/x/a.sqlite")),
        ("sqlite:///a.sqlite?mode=ro", Path("a.sqlite")),
        ("postgresql://db/x", None),
        ("saver.py:make", None),
        (":memory:", None),
    ],
)
def test_the_file_of_a_store_is_known_where_it_has_one(url: str, path: Path | None) -> None:
    assert sqlite_file(url) == path


DOCS = Path(__file__).parents[2] / "docs" / "config.md"


def test_the_file_in_the_documentation_is_read_and_says_what_the_text_says(tmp_path: Path) -> None:
    text = DOCS.read_text()
    (example,) = [part.removeprefix("yaml\n") for part in text.split("```") if part.startswith("yaml\n")]
    config = config_in(tmp_path, example, {"PROD_PASSWORD": "x"})
    assert config.store_of().url == "postgresql://support_reader:x@db.internal/agents"
    assert config.target_of("staging").url == str(tmp_path / "data/staging.sqlite")
    assert config.debug_store().url == str(tmp_path / ".agentctl/debug.sqlite")
    assert config.graph_for({}).name == "support_refunds"


def test_the_documentation_explains_every_key() -> None:
    text = DOCS.read_text()
    profile = "store access default schema ticket audit mask protected retention"
    workflow = "graph sandbox production model incidents renderer checks"
    masking = "fields patterns never regions"
    assert [key for key in f"{profile} {workflow} {masking}".split() if f"| `{key}` |" not in text] == []
