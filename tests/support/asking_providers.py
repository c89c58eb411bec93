"""A confined process that asks providers of models, by their own clients, sync and async.

Arguments: the port of the proxy, the address of the provider, the address of one that may not be reached. Prints a JSON
object: what each ask came to.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(proxy_port: int, provider: str, other: str) -> None:
    """Confines this process and asks."""
    from agentctl.sandbox.isolation.confinement import Confinement, confine

    confine(Confinement(proxy_port, (Path(tempfile.gettempdir()),)))
    asks = {**_asks(provider), "another host": lambda: _openai(other), "another host by https": _by_https}
    print(json.dumps({name: _outcome(ask) for name, ask in asks.items()}))


def _asks(address: str) -> dict[str, Callable[[], object]]:
    import anthropic
    import openai
    from google import genai

    hello: Any = {"role": "user", "content": "hello"}
    anthropic_ask: Any = {"model": "m", "max_tokens": 9, "messages": [hello]}
    google = genai.Client(api_key="k", http_options={"base_url": address})

    async def openai_async() -> object:
        client = openai.AsyncOpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0)
        return (await client.chat.completions.create(model="m", messages=[hello])).choices[0].message.content

    async def anthropic_async() -> object:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=address, max_retries=0)
        return (await client.messages.create(**anthropic_ask)).content[0].text

    async def google_async() -> object:
        return (await google.aio.models.generate_content(model="m", contents="hello")).text

    def anthropic_sync() -> object:
        client = anthropic.Anthropic(api_key="k", base_url=address, max_retries=0)
        return client.messages.create(**anthropic_ask).content[0].text

    return {
        "openai": lambda: _openai(address),
        "openai async": lambda: asyncio.run(openai_async()),
        "openai streamed": lambda: _openai_streamed(address),
        "anthropic": anthropic_sync,
        "anthropic async": lambda: asyncio.run(anthropic_async()),
        "google": lambda: google.models.generate_content(model="m", contents="hello").text,
        "google async": lambda: asyncio.run(google_async()),
    }


def _openai(address: str) -> object:
    import openai

    client = openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0)
    made = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
    return made.choices[0].message.content


def _openai_streamed(address: str) -> object:
    import openai

    client = openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0)
    chunks = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def _by_https() -> object:
    import httpx

    return httpx.get("https://api.example.com/v1").text


def _outcome(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
