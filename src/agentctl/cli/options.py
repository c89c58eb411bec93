"""Every option that more than one command has, said once."""

from __future__ import annotations

from typing import Annotated

import typer


def _note_ticket(context: typer.Context, value: str | None) -> str | None:
    context.obj.ticket = value or ""
    return value


def _note_reason(context: typer.Context, value: str | None) -> str | None:
    context.obj.reason = value or ""
    return value


Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="[PROFILE::]THREAD[@REV]; THREAD alone is its head. See docs/revisions.md."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document (docs/json.md) instead of a table.")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where checkpoints live: a SQLite path, postgresql://..., or path.py:attr for any saver. "
        "Else AGENTCTL_STORE, else the default profile.",
    ),
]
Schema = Annotated[
    str | None, typer.Option("--schema", metavar="NAME", help="The Postgres schema that holds the tables.")
]
Namespace = Annotated[
    str | None, typer.Option("--ns", metavar="NS", help="A subgraph's checkpoint namespace; the root graph without it.")
]
Branch = Annotated[
    str | None,
    typer.Option("--branch", metavar="ID", help="Read along the branch that ends at this checkpoint, not the head's."),
]
Literal = Annotated[
    bool, typer.Option("--literal", help="Take TARGET as a thread id as it is, whatever `@` and `::` it contains.")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="At most N rows; 0 for all. On a terminal 50 unless said."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="TEXT", help="Why; kept with what is written, and in the audit log.", callback=_note_reason
    ),
]
Ticket = Annotated[
    str | None,
    typer.Option(
        "--ticket",
        metavar="ID",
        help="The ticket that a store is read for; kept in the audit log (docs/config.md).",
        callback=_note_ticket,
    ),
]
Case = Annotated[
    str | None,
    typer.Option("--case", metavar="NAME", help="The case that keeps the evidence; else one named after the thread."),
]
Mask = Annotated[
    bool | None,
    typer.Option(
        "--mask/--no-mask",
        help="Replace personal data by tokens on the way (docs/masking.md). A profile with mask: always always does.",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="PROFILE|URL", help="The store that copies go to; the debug store without it."),
]
DebugStore = Annotated[
    str | None, typer.Option("--debug-store", metavar="URL", help="The debug store, instead of the configured one.")
]

Graph = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="PATH:ATTR",
        help="The graph to run, as in langgraph.json; else found from the thread's metadata.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="CHANNEL",
        help="Go on without the stored value of a channel that the graph has no more. Repeatable.",
    ),
]
Tools = Annotated[
    str,
    typer.Option(
        "--tools",
        metavar="recorded|sandbox",
        help="Answer tool calls from the recording first, or from the sandbox alone.",
    ),
]
WorkflowTools = Annotated[
    str,
    typer.Option(
        "--tools",
        metavar="sandbox|production",
        help="Sandbox tools run in a debug store alone. Production tools have real effects; they need a profile with "
        "access: write, and AGENTCTL_ENV=production.",
    ),
]
Stream = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        metavar="updates|values|messages|custom|debug",
        help="Show what happens as it happens, subgraphs and subagents included. Repeatable.",
    ),
]
Stub = Annotated[
    list[str] | None,
    typer.Option("--stub", metavar="NAME=JSON", help="The answer to every call of a tool. Repeatable."),
]
LiveReads = Annotated[bool, typer.Option("--live-reads", help="Let tools of effect `read` run for real.")]
EffectOf = Annotated[
    list[str] | None,
    typer.Option(
        "--effect", metavar="NAME=read|write|state", help="A tool's effect, where no registry tells. Repeatable."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="PROVIDER:MODEL|recorded",
        help="Run with this model instead; with recorded, with none: the thread's own model answers.",
    ),
]
ContextJson = Annotated[
    str | None,
    typer.Option("--context", metavar="JSON|@FILE", help="The runtime context that the graph's schema asks for."),
]
Configurable = Annotated[
    list[str] | None,
    typer.Option(
        "--configurable", metavar="KEY=VALUE", help="A configurable value, over the recorded one. Repeatable."
    ),
]
Check = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        metavar="CHECK",
        help="What failing means: a file, or 'reply contains TEXT', 'called NAME', 'not called NAME', "
        "'state JMESPATH'. Repeatable, all must hold.",
    ),
]
ResumeJson = Annotated[
    list[str] | None,
    typer.Option("--resume", metavar="JSON", help="Answers interrupts, in order, each once. Repeatable."),
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Stop a run after this long.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", metavar="N", min=1, help="Stop a run after this many super-steps.")
]
EnvVar = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME=VALUE", help="An environment variable for the graph's import and run. Repeatable."
    ),
]

Isolation = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        metavar="strict|best|off",
        help="Run the graph in a process that reaches nothing: under the kernel's layers alone, under what there is, "
        "or in this process. Else AGENTCTL_ISOLATION, else best. See docs/safety.md.",
    ),
]
AllowEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-env", metavar="NAME", help="A variable of this environment that the graph may see. Repeatable."
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="HOST:PORT",
        help="A host that the graph may reach, besides the provider of its model. Repeatable.",
    ),
]

Answer = Annotated[
    list[str] | None,
    typer.Option(
        "--answer", metavar="CALL=JSON|@FILE", help="Fork: the whole result of a tool call, by name or id. Repeatable."
    ),
]
Patch = Annotated[
    list[str] | None,
    typer.Option("--patch", metavar="CALL:PATH=JSON", help="Fork: one field of a recorded result. Repeatable."),
]
SetValue = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=JSON", help="Fork: replace a value in the state. Repeatable.")
]
Update = Annotated[
    str | None, typer.Option("--update", metavar="FILE", help="Fork: a JSON update, written as the node of --as-node.")
]
AsNode = Annotated[
    str | None, typer.Option("--as-node", metavar="NODE", help="The node that --update or --set is written as.")
]
Goto = Annotated[
    str | None, typer.Option("--goto", metavar="NODE", help="Fork: run this node next, whatever the old route.")
]
InputFile = Annotated[
    str | None, typer.Option("--input", metavar="FILE", help="Fork: JSON input to start the branch with.")
]
Memory = Annotated[
    list[str] | None,
    typer.Option(
        "--memory", metavar="NS/KEY=JSON", help="Fork: an item of the memory store, in the run's copy. Repeatable."
    ),
]
