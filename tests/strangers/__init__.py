"""Graphs that import nothing of agentctl, in every way that tools are put to a graph.

Each is recorded once for real, then replayed and forked; an effect would be a line in a file or in a list. `desk_app`
is an application with relative imports, `graphs` are single files. `test_projects.py` replays and forks `desk_app` by
the command line, `test_recorded_models.py` does so with no model at all, `test_apart.py` in the process that
experiments run in by default, `test_strangers.py` runs `graphs` on their recordings. `tests/cli/test_sandbox_init.py`
writes their registries.

| what                                               | graph                                                   |
|----------------------------------------------------|---------------------------------------------------------|
| `create_agent`                                     | desk_app/keyed, desk_app/handoff, graphs/react_agent    |
| ToolNode                                           | desk_app/inside, desk_app/nested, graphs/plain_tool_node|
| `create_deep_agent` with subagents                 | desk_app/deep, graphs/deep_agent                        |
| nested subgraphs                                   | desk_app/nested, graphs/nested_async                    |
| functional API                                     | desk_app/workflow, graphs/functional                    |
| tools called directly in a node                    | desk_app/lazy, graphs/direct_calls                      |
| tools, and a ToolNode, built while the graph runs  | desk_app/lazy, desk_app/lazynode                        |
| tools that are async only                          | desk_app/nested, desk_app/remote, graphs/nested_async   |
| tools, and a whole agent, that are sync only       | desk_app/keyed                                          |
| InjectedState, InjectedStore, ToolRuntime          | desk_app/inside                                         |
| InjectedToolCallId                                 | desk_app/inside, desk_app/handoff, desk_app/lazynode    |
| context schema (`--context`)                       | desk_app/inside                                         |
| tools that return a Command                        | desk_app/handoff, desk_app/lazynode                     |
| `wrap_tool_call`: sync, async                      | desk_app/keyed, graphs/react_agent                      |
| relative imports                                   | every graph of desk_app                                 |
| a key that the import needs (`--env`)              | desk_app/keyed                                          |
| a graph built inside a function: sync, async       | desk_app/inside, desk_app/nested                        |
| tools that start a program, as those of MCP do     | desk_app/remote                                         |
"""
