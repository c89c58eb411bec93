"""`agentctl config`."""

from __future__ import annotations

from tests.support.cli import Cli


def test_every_setting_with_where_it_comes_from(cli: Cli) -> None:
    document = cli("config", "show", "--json").json
    assert document["schema"] == "agentctl.config/1"
    assert document["store"] == str(cli.cwd / "agentctl.yaml")
    assert (document["n_total"], document["truncated"]) == (len(document["items"]), False)
    found = {item["name"]: item for item in document["items"]}
    assert any("prod" in name for name in found)
    assert all(item["origin"] for item in found.values())
    assert len(cli("config", "show").rows) == document["n_total"]
    assert "setting" in cli("config", "show", terminal=True).out.splitlines()[0]


def test_secrets_are_hidden(cli: Cli) -> None:
    environ = {"AGENTCTL_STORE": "postgresql://reader:hunter2@db/prod", "HOME": str(cli.cwd)}
    for args in (("--json",), ()):
        out = cli("config", "show", *args, environ=environ).out
        assert "hunter2" not in out
    assert "reader:***@db" in cli("config", "show", environ=environ).out


def test_a_wrong_file_is_said_with_its_line(cli: Cli) -> None:
    (cli.cwd / "agentctl.yaml").write_text("profiles:\n  prod: {stor: x}\n", "utf-8")
    failed = cli("config", "show")
    assert failed.code == 4
    assert "agentctl.yaml" in failed.err and "stor" in failed.err
    assert cli("threads", "--json").json["error"]["kind"] == "config"
