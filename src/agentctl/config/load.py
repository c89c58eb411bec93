"""Everything that is configured, from agentctl.yaml, langgraph.json and the environment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentctl.config.debug import debug_path, sqlite_file, state_folder
from agentctl.config.masking import read_masking
from agentctl.config.origins import DEFAULT, Origin
from agentctl.config.places import expand, locate_code, locate_store, same_login, same_store
from agentctl.config.profiles import DEBUG, AuditRule, Mask, Profile, read_profiles, store_text
from agentctl.config.stores import StoreChoice
from agentctl.config.workflows import (
    GraphChoice,
    Workflow,
    choose_graph,
    find_workflow,
    named_graph,
    read_langgraph_json,
    read_workflows,
)
from agentctl.config.yamlfile import Section, read_yaml
from agentctl.errors import ConfigError, NotFound, Refused
from agentctl.records.masking import MaskSettings

CONFIG_NAME = "agentctl.yaml"
LANGGRAPH_NAME = "langgraph.json"
STORE_VARIABLE = "AGENTCTL_STORE"
DEBUG_VARIABLE = "AGENTCTL_DEBUG_STORE"
PROFILE_VARIABLE = "AGENTCTL_PROFILE"
MASK_KEY_NAME = "mask-key"

_PLACEHOLDERS = re.compile(r"\$\{([^}]*)\}")
_KEYS = frozenset({"profiles", "workflows", "debug_store", "masking"})


def load_config(cwd: Path, env: Mapping[str, str]) -> Config:
    """Returns the configuration seen from a folder. Nothing is created and no variable is needed yet.

    Args:
        cwd: Absolute; agentctl.yaml and langgraph.json are looked for in it and each folder above.
        env: The environment.

    Raises:
        ConfigError: agentctl.yaml is wrong; the message names file, line and key.
    """
    file = _find_upward(cwd, CONFIG_NAME)
    top = read_yaml(file) if file else Section(cwd / CONFIG_NAME, (), {}, {})
    top.only(_KEYS)
    profiles = read_profiles(top.section("profiles"))
    debug_text = store_text(top, "debug_store")
    if debug_text is not None:
        if profiles[DEBUG].store is not None:
            raise top.error(
                "debug_store", "and profiles.debug.store both say where the debug store is", hint="keep one"
            )
        profiles[DEBUG] = replace(profiles[DEBUG], store=debug_text, origin=top.origin("debug_store"))
    return Config(
        cwd=cwd,
        env=env,
        file=file,
        langgraph_file=_find_upward(cwd, LANGGRAPH_NAME),
        profiles=profiles,
        workflows=read_workflows(top.section("workflows")),
        masking=read_masking(top.section("masking")),
        masking_origin=top.origin("masking") if "masking" in top.data else DEFAULT,
    )


def _find_upward(cwd: Path, name: str) -> Path | None:
    found = next((folder / name for folder in (cwd, *cwd.parents) if (folder / name).exists()), None)
    if found is not None and not found.is_file():
        raise ConfigError(f"{found} is not a file", hint=f"move it away, or make it the {name} that it is taken for")
    return found


@dataclass(frozen=True, slots=True)
class Config:
    """What is configured, and the decisions made from it.

    Attributes:
        cwd: The working folder.
        env: The environment; may hold secrets.
        file: The agentctl.yaml found, or None.
        langgraph_file: The langgraph.json found, or None.
        profiles: By name; `debug` is always there.
        workflows: By name.
        masking: What is personal besides what is known anyway.
        masking_origin: Where that was said.
    """

    cwd: Path
    env: Mapping[str, str] = field(repr=False)
    file: Path | None
    langgraph_file: Path | None
    profiles: Mapping[str, Profile]
    workflows: Mapping[str, Workflow]
    masking: MaskSettings = field(default_factory=MaskSettings)
    masking_origin: Origin = DEFAULT

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Names that may stand before `::`."""
        return tuple(self.profiles)

    def store_of(
        self,
        profile: str | None = None,
        flag: str | None = None,
        *,
        schema: str | None = None,
        debug_flag: str | None = None,
    ) -> StoreChoice:
        """Returns the store of a target. Relative paths of flags and variables start at the working folder.

        Args:
            profile: What stood before `::`; None or '' where nothing did.
            flag: `--store`, used for targets without a profile.
            schema: `--schema`, before the profile's own.
            debug_flag: `--debug-store`, where the profile is `debug`.

        Raises:
            NotFound: no such profile.
            ConfigError: nothing says which store, or a variable is missing.
            Refused: `--debug-store` names a profile that is never written.
        """
        if profile:
            choice = self.debug_store(debug_flag) if profile == DEBUG else self._of_profile(profile)
        elif flag:
            choice = self._given(flag, Origin("flag", "--store"))
        elif text := self.env.get(STORE_VARIABLE):
            choice = self._given(text, Origin("environment", STORE_VARIABLE))
        elif name := self.env.get(PROFILE_VARIABLE):
            choice = self.store_of(name, debug_flag=debug_flag)
        else:
            choice = self.store_of(self._default_profile(), debug_flag=debug_flag)
        return replace(choice, schema=schema) if schema else choice

    def debug_store(self, flag: str | None = None) -> StoreChoice:
        """Returns the store that experiments run in: `--debug-store`, its variable, the file, or the built-in one.

        Raises:
            ConfigError: a variable is missing.
            Refused: a flag or variable names the store of a profile that is never written.
        """
        if flag:
            return self._debug_at(flag, Origin("flag", "--debug-store"))
        if text := self.env.get(DEBUG_VARIABLE):
            return self._debug_at(text, Origin("environment", DEBUG_VARIABLE))
        if self.profiles[DEBUG].store is None:
            return StoreChoice(str(debug_path(self.env)), DEBUG, "write", protected=self.profiles[DEBUG].protected)
        return self._of_profile(DEBUG)

    def _debug_at(self, text: str, origin: Origin) -> StoreChoice:
        url = locate_store(text, self.cwd)
        reached = [profile for profile in self._profiles_at(url) if profile.name != DEBUG]
        for profile in reached:
            if profile.access != "write" and self._has_login(profile, url):
                raise Refused(
                    f"{origin.where} names the store of profile {profile.name}, which has access: read",
                    hint="experiments run in a store of their own: leave it out, or name another file or database",
                )
        protected = {pattern: None for each in (self.profiles[DEBUG], *reached) for pattern in each.protected}
        return StoreChoice(url, DEBUG, "write", origin=origin, protected=tuple(protected), audit=_strictest(reached))

    def target_of(
        self, text: str | None = None, *, schema: str | None = None, debug_flag: str | None = None
    ) -> StoreChoice:
        """Returns the store that copies go to: `--to PROFILE|URL`, else the debug store.

        Raises:
            Refused: the profile has `access: read`.
        """
        if text is None or text == DEBUG:
            choice = self.debug_store(debug_flag)
        elif text in self.profiles:
            choice = self._of_profile(text)
        else:
            choice = StoreChoice(locate_store(text, self.cwd), access="write", origin=Origin("flag", "--to"))
        if not choice.profile:
            choice = self._as_profile(choice)
        if choice.access != "write":
            raise Refused(
                f"profile {choice.profile} has access: read and is never written", hint="leave --to away, or --to debug"
            )
        return replace(choice, schema=schema) if schema else choice

    @property
    def audit_folder(self) -> Path:
        """The folder of the audit log: one a person, which no flag moves."""
        return state_folder(self.env) / "audit"

    def cases_root(self, debug: StoreChoice) -> Path:
        """Returns the folder that cases are kept in: beside a SQLite debug store, else in the state folder."""
        file = sqlite_file(debug.url)
        return (self.cwd / file).parent / "cases" if file else state_folder(self.env) / "cases"

    def mask_key_file(self, debug: StoreChoice) -> Path:
        """Returns the file of the key that masks what goes into a debug store; it need not exist.

        It lies beside a SQLite debug store; those on servers share one in the state folder.
        """
        file = sqlite_file(debug.url)
        if file is None:
            return state_folder(self.env) / MASK_KEY_NAME
        file = self.cwd / file
        return file.with_name(f"{file.name}.{MASK_KEY_NAME}")

    def workflow_for(self, wanted: str | Mapping[str, object]) -> Workflow | None:
        """Returns a workflow by name, or the one that checkpoint metadata names (None where it names none).

        Raises:
            UsageError: no workflow has that name.
        """
        return find_workflow(self.workflows, wanted)

    def graph_for(self, metadata: Mapping[str, object], flag: str | None = None) -> GraphChoice:
        """Returns the graph to load for a thread.

        Args:
            metadata: Metadata of its head.
            flag: `--graph`: a configured name, `path.py:attr` (from the working folder) or `package.module:attr`.

        Raises:
            UsageError: none fits, or several could.
            ConfigError: langgraph.json is wrong.
        """
        graphs = read_langgraph_json(self.langgraph_file) if self.langgraph_file else {}
        if flag is None:
            return choose_graph(self.workflows, graphs, self.langgraph_file, metadata)
        origin = Origin("flag", "--graph")
        if ":" not in flag:
            return replace(named_graph(self.workflows, graphs, self.langgraph_file, flag), origin=origin)
        graph = locate_code(flag, self.cwd)
        workflow = next((flow for flow in self.workflows.values() if flow.graph == graph), None)
        return GraphChoice(workflow.name if workflow else flag, graph, workflow, origin)

    def _given(self, text: str, origin: Origin) -> StoreChoice:
        """Returns a store given by itself; what its profiles ask of copies and of reads holds for it too."""
        url = locate_store(text, self.cwd)
        reached = list(self._profiles_at(url))
        mask: Mask = "always" if any(profile.mask == "always" for profile in reached) else "never"
        return StoreChoice(url, origin=origin, mask=mask, audit=_strictest(reached))

    def _as_profile(self, choice: StoreChoice) -> StoreChoice:
        """Returns a store given by itself as the profile that names it with the same login, where there is one."""
        reached = list(self._profiles_at(choice.url))
        own = next((profile for profile in reached if self._has_login(profile, choice.url)), None)
        return replace(self._of_profile(own.name) if own is not None else choice, audit=_strictest(reached))

    def _profiles_at(self, url: str) -> Iterator[Profile]:
        """Yields the profiles of a store that was given by itself."""
        folder = self.file.parent if self.file else self.cwd
        for profile in self.profiles.values():
            names = _PLACEHOLDERS.findall(profile.store or "")
            if profile.store and all(self.env.get(name) for name in names):
                stored = locate_store(expand(profile.store, self.env, profile.name), folder)
                if same_store(stored, url):
                    yield profile

    def _has_login(self, profile: Profile, url: str) -> bool:
        return same_login(expand(profile.store or "", self.env, profile.name), url)

    def _default_profile(self) -> str:
        name = next((profile.name for profile in self.profiles.values() if profile.default), None)
        if name is None:
            others = [name for name in self.profiles if name != DEBUG]
            named = f", or write {others[0]}::THREAD" if others else ""
            raise ConfigError(
                "nothing says which store",
                hint=f"give --store URL, set {STORE_VARIABLE}, or mark a profile default in {CONFIG_NAME}{named}",
            )
        return name

    def _of_profile(self, name: str) -> StoreChoice:
        profile = self.profiles.get(name)
        if profile is None:
            near = difflib.get_close_matches(name, list(self.profiles), n=1)
            raise NotFound(
                f"there is no profile {name}",
                hint=f"did you mean {near[0]}?" if near else f"profiles are: {', '.join(self.profiles)}",
            )
        where = f"profile {name} ({profile.origin.where})"
        folder = self.file.parent if self.file else self.cwd
        return StoreChoice(
            locate_store(expand(profile.store or "", self.env, where), folder),
            profile.name,
            profile.access,
            expand(profile.schema, self.env, where) if profile.schema else None,
            profile.origin,
            profile.mask,
            profile.protected,
            profile.audit_rule,
        )


def _strictest(profiles: Iterable[Profile]) -> AuditRule | None:
    """Returns the rule of the profile that asks most of a read."""
    rules = [rule for profile in profiles if (rule := profile.audit_rule) is not None]
    return max(rules, key=lambda rule: rule.ticket, default=None)
