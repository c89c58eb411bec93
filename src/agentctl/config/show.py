"""What is in force and where each value came from, for `config show`."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.config.debug import debug_path
from agentctl.config.load import DEBUG_VARIABLE, LANGGRAPH_NAME, PROFILE_VARIABLE, STORE_VARIABLE, Config
from agentctl.config.origins import DEFAULT, Origin, Setting
from agentctl.config.places import hide_password
from agentctl.config.profiles import ALL_THREADS, DEBUG, Profile
from agentctl.config.workflows import Workflow
from agentctl.errors import ConfigError
from agentctl.records.masking import KEY_VARIABLE, REGIONS


def list_settings(config: Config) -> tuple[Setting, ...]:
    """Returns every setting with its origin; variables of the file are shown as written, not filled in."""
    found = [
        Setting("config file", str(config.file or "none found"), DEFAULT),
        Setting(LANGGRAPH_NAME, str(config.langgraph_file or "none found"), DEFAULT),
        _default_store(config),
        _debug_store(config),
    ]
    for profile in config.profiles.values():
        if profile.name != DEBUG:
            found.extend(_profile(profile))
    for workflow in config.workflows.values():
        found.extend(_workflow(workflow))
    found.extend(_masking(config))
    return tuple(found)


def _default_store(config: Config) -> Setting:
    if text := config.env.get(STORE_VARIABLE):
        return Setting("store", hide_password(text), Origin("environment", STORE_VARIABLE))
    if name := config.env.get(PROFILE_VARIABLE):
        return Setting("store", f"{name}::", Origin("environment", PROFILE_VARIABLE))
    default = next((profile for profile in config.profiles.values() if profile.default), None)
    return Setting("store", f"{default.name}::", default.origin) if default else Setting("store", "none", DEFAULT)


def _debug_store(config: Config) -> Setting:
    if text := config.env.get(DEBUG_VARIABLE):
        return Setting("debug_store", hide_password(text), Origin("environment", DEBUG_VARIABLE))
    profile = config.profiles[DEBUG]
    if profile.store is None:
        return Setting("debug_store", str(debug_path(config.env)), DEFAULT)
    return Setting("debug_store", profile.store, profile.origin)


def _profile(profile: Profile) -> Iterator[Setting]:
    for key in ("store", "access", "schema", "ticket", "mask", "retention"):
        if value := getattr(profile, key):
            yield Setting(f"profiles.{profile.name}.{key}", str(value), profile.origin)
    for key in ("default", "audit"):
        if getattr(profile, key):
            yield Setting(f"profiles.{profile.name}.{key}", "true", profile.origin)
    if profile.protected:
        shown = "true" if profile.protected == (ALL_THREADS,) else ", ".join(profile.protected)
        yield Setting(f"profiles.{profile.name}.protected", shown, profile.origin)


def _workflow(workflow: Workflow) -> Iterator[Setting]:
    for key in ("graph", "sandbox", "production", "claims", "model", "incidents", "renderer"):
        if value := getattr(workflow, key):
            yield Setting(f"workflows.{workflow.name}.{key}", str(value), workflow.origin)
    for check in workflow.checks:
        yield Setting(f"workflows.{workflow.name}.checks", check, workflow.origin)


def _masking(config: Config) -> Iterator[Setting]:
    yield _mask_key(config)
    rules, origin = config.masking, config.masking_origin
    for field in rules.fields:
        yield Setting(f"masking.fields.{field.pattern}", field.kind, origin)
    for pattern in rules.patterns:
        yield Setting(f"masking.patterns.{pattern.name}", f"{pattern.kind}: {pattern.regex}", origin)
    if rules.never:
        yield Setting("masking.never", ", ".join(rules.never), origin)
    if rules.regions != REGIONS:
        yield Setting("masking.regions", ", ".join(rules.regions), origin)


def _mask_key(config: Config) -> Setting:
    if config.env.get(KEY_VARIABLE):
        return Setting("mask_key", "set, not shown", Origin("environment", KEY_VARIABLE))
    try:
        return Setting("mask_key", str(config.mask_key_file(config.debug_store())), DEFAULT)
    except ConfigError:  # the debug store takes a variable that is not set
        return Setting("mask_key", "beside the debug store", DEFAULT)
