"""What a command masks: what was asked for, the key that is used, and what a person is told about it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentctl.config.profiles import DEBUG
from agentctl.config.stores import StoreChoice, is_masked_on_copy
from agentctl.records.masking import KEY_VARIABLE

if TYPE_CHECKING:
    from agentctl.cli.env import Env
    from agentctl.config.load import Config
    from agentctl.masking.masker import Masker
    from agentctl.stores.base import Reader


@dataclass(frozen=True, slots=True)
class MaskWish:
    """Whether what a command takes out of a store is masked.

    Attributes:
        asked: What `--mask` or `--no-mask` said, None where neither was given.
        unsaid: What holds then, unless the profile has `mask: always`.
        keeps_key: Whether a key may be made where there is none yet; a dry run makes none.
    """

    asked: bool | None = None
    unsaid: bool = False
    keeps_key: bool = True

    def holds(self, choice: StoreChoice) -> bool:
        """Says whether it means a store.

        Raises:
            Refused: `--no-mask`, and the profile has `mask: always`.
        """
        return is_masked_on_copy(choice, self.asked, unsaid=self.unsaid)


def make_masker(env: Env, config: Config, debug_flag: str | None, *, keeps_key: bool = True) -> Masker:
    """Returns what masks with the rules of the configuration and the key of the debug store.

    Args:
        env: The world, whose environment may give a key.
        config: The configuration.
        debug_flag: `--debug-store`.
        keeps_key: Whether a key is made and kept where there is none.

    Raises:
        ConfigError: A rule or the key is wrong.
        StoreError: The key cannot be read or kept.
    """
    from agentctl.masking.keyfile import kept_key, read_key
    from agentctl.masking.keys import key_of, new_key
    from agentctl.masking.masker import Masker
    from agentctl.masking.rules import rules_of

    rules = rules_of(config.masking)
    if text := env.environ.get(KEY_VARIABLE):
        return Masker(rules, key_of(text))
    file = config.mask_key_file(config.debug_store(debug_flag))
    if keeps_key:
        return Masker(rules, kept_key(file, secrets.token_bytes))
    return Masker(rules, read_key(file) or new_key(secrets.token_bytes))


def masked_reader(reader: Reader, choice: StoreChoice, masker: Callable[[], Masker]) -> Reader:
    """Returns a store's reader masked; whether threads say that they are masked counts where they are one's own."""
    from agentctl.masking.reader import masked

    return masked(reader, masker, trusts_marks=choice.mask != "always" or choice.profile == DEBUG)
