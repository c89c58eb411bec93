"""The providers of models that a configured model may be of: where each is reached, and which variables it reads.

Source: `init_chat_model` (langchain 1.5.4, chat_models/base.py) for the names; the clients' own documentation for
hosts and variables (langchain-openai, langchain-anthropic, langchain-google-genai, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        host: `HOST:PORT` where its API is.
        keys: Variables that hold what it is asked with.
        bases: Variables that name another address in place of the host.
    """

    host: str
    keys: tuple[str, ...]
    bases: tuple[str, ...] = ()


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "openai": Provider(
            "api.openai.com:443",
            ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
            ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        ),
        "anthropic": Provider(
            "api.anthropic.com:443", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL")
        ),
        "google_genai": Provider(
            "generativelanguage.googleapis.com:443",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            ("GOOGLE_GEMINI_BASE_URL",),
        ),
        "mistralai": Provider("api.mistral.ai:443", ("MISTRAL_API_KEY",), ("MISTRAL_BASE_URL",)),
        "groq": Provider("api.groq.com:443", ("GROQ_API_KEY",), ("GROQ_API_BASE", "GROQ_BASE_URL")),
        "cohere": Provider("api.cohere.com:443", ("COHERE_API_KEY",), ("CO_API_URL",)),
        "deepseek": Provider("api.deepseek.com:443", ("DEEPSEEK_API_KEY",), ("DEEPSEEK_API_BASE",)),
        "xai": Provider("api.x.ai:443", ("XAI_API_KEY",)),
        "fireworks": Provider("api.fireworks.ai:443", ("FIREWORKS_API_KEY",)),
        "together": Provider("api.together.xyz:443", ("TOGETHER_API_KEY",)),
        "perplexity": Provider("api.perplexity.ai:443", ("PPLX_API_KEY", "PERPLEXITY_API_KEY")),
        "openrouter": Provider("openrouter.ai:443", ("OPENROUTER_API_KEY",), ("OPENROUTER_API_BASE",)),
        "ollama": Provider("127.0.0.1:11434", (), ("OLLAMA_HOST",)),
    }
)


def provider_of(model: str | None) -> Provider | None:
    """Returns the provider of a `provider:model`, None where it names none that is known."""
    return PROVIDERS.get(model.partition(":")[0]) if model and ":" in model else None


def unused_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns a value for each key that is not set: clients are not built without one, also where nobody asks them."""
    names = (name for provider in PROVIDERS.values() for name in provider.keys if name.endswith("_API_KEY"))
    return {name: "unused" for name in names if name not in environ}
