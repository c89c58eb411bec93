"""`agentctl resolve`."""

from __future__ import annotations

from tests.support.cli import AGENT, EDITED, Cli


def test_the_id_and_the_reason(cli: Cli) -> None:
    target = f"{AGENT}@call:lookup_order"
    assert cli.named(cli("resolve", target, terminal=True).out, AGENT) == (
        "<id 2>\n  where call c1 of lookup_order waits for its answer\n"
    )
    id, ns, why = cli("resolve", target).rows[0]
    assert (len(id), ns) == (36, "")
    document = cli("resolve", target, "--json").json
    assert (document["schema"], document["id"], document["why"]) == ("agentctl.resolve/1", id, why)
    assert document["thread"] == AGENT


def test_every_id_of_a_history_resolves_to_itself(cli: Cli) -> None:
    for id in cli.ids(EDITED):
        for text in (id, id[-8:], id[-8:].upper()):
            assert cli("resolve", f"prod::{EDITED}@{text}").rows[0][0] == id


def test_an_ambiguous_suffix_lists_what_it_could_be(cli: Cli) -> None:
    """Four digits are enough for a suffix; where they name two, both are listed."""
    failed = cli("resolve", f"{EDITED}@000", "--json")
    assert failed.code == 3
    assert failed.json["error"]["hint"] == "give at least 4 hex digits of the id's end"


def test_exit_codes(cli: Cli) -> None:
    assert cli("resolve", f"{AGENT}@step:9").code == 3
    assert cli("resolve", f"{AGENT}@step:").code == 2
    assert cli("resolve", f"{AGENT}@call:nothing").code == 3
