"""Applications of the functional API, sync and async."""

from __future__ import annotations

from typing import Any

from langgraph.func import entrypoint, task


@task
def look(number: int) -> dict[str, int]:
    return {"a": number}


@task
def scale(found: dict[str, int]) -> int:
    return found["a"] * 10


@entrypoint()
def flow(number: int, *, previous: Any = None) -> Any:
    found = look(number).result()
    return entrypoint.final(value={"scaled": scale(found).result(), "previous": previous}, save={"a": 2})


@entrypoint()
async def async_flow(number: int, *, previous: Any = None) -> Any:
    found = await look(number)
    return entrypoint.final(value={"scaled": await scale(found), "previous": previous}, save={"a": 2})
