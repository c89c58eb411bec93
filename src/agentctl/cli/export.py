"""`agentctl export`: a branch's user turns into a dataset, so that the case never comes back unseen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentctl.cli import options
from agentctl.cli.experimenting import find_graph
from agentctl.cli.grouped import RunOptions, Where, expanded
from agentctl.cli.masking import MaskWish
from agentctl.cli.opening import Opened, Stores, open_in, open_target
from agentctl.cli.output import Answer, emit, say
from agentctl.codec import jsontext
from agentctl.errors import AgentctlError, Refused, UsageError
from agentctl.records.datasets import BadResult, Example, ExportReport
from agentctl.render import export as rendering
from agentctl.revisions.scope import Resolution

if TYPE_CHECKING:
    from agentctl.datasets.branch import Branch
    from agentctl.stores.base import Reader

Dataset = Annotated[str, typer.Option("--dataset", metavar="NAME", help="The dataset, a folder below datasets/.")]
Format = Annotated[str, typer.Option("--format", metavar="jsonl|csv|pytest|langsmith", help="What is written.")]
Expect = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="TARGET|@FILE",
        help="What is right: the outcome of another branch, or a file with the reply or "
        '{"reply", "tool_calls": [{"name", "args"}]}.',
    ),
]
Output = Annotated[
    str | None, typer.Option("--output", metavar="DIR", help="The folder of datasets, instead of datasets/.")
]
Split = Annotated[str, typer.Option("--split", metavar="NAME", help="train, test or any other name.")]
Memory = Annotated[
    list[str] | None,
    typer.Option(
        "--memory", metavar="NS/KEY=JSON", help="An item that the memory store holds when it runs again. Repeatable."
    ),
]
BadResults = Annotated[
    bool, typer.Option("--bad-result", help="Keep the tool results that the fork corrected as fixtures too.")
]


@expanded
def export(
    ctx: typer.Context,
    target: options.Target,
    dataset: Dataset,
    where: Where,
    format: Format = "jsonl",
    expect: Expect = None,
    check: options.Check = None,
    graph: options.Graph = None,
    configurable: options.Configurable = None,
    stub: options.Stub = None,
    resume: options.ResumeJson = None,
    memory: Memory = None,
    output: Output = None,
    split: Split = "test",
    bad_result: BadResults = False,
    mask: options.Mask = None,
    dry_run: options.DryRun = False,
    reason: options.Reason = None,
    as_json: options.Json = False,
) -> None:
    """Add a branch to a dataset: one example a user turn, with its recording and what would have been right.

    The outcome of a fork is taken as right; of any other thread say what is, with --expect or --check. THREAD@A...B
    exports both branches. Exporting a turn again replaces its example. --configurable, --stub, --resume and --memory
    say how the example runs again, over what was recorded. Personal data is masked, unless --no-mask says otherwise.

    Example: agentctl export debug::support-17.fork-1 --dataset refunds --format pytest

    JSON: agentctl.export/1 {dataset, format, n_examples, n_new, files, url, masked, masking,
    warnings}.

    Exit: 0 done, 3 no such thread or checkpoint, 5 nothing says what is right.
    """
    env = ctx.obj
    from agentctl.datasets.export import export as write
    from agentctl.datasets.export import format_of
    from agentctl.datasets.folder import require_name

    require_name(dataset)
    chosen = format_of(format)
    wish = MaskWish(mask, unsaid=True, keeps_key=not dry_run)
    with open_target(env, target, where, ranges=True, mask=wish) as opened:
        warnings: list[str] = []
        _tell_masking(opened, mask)
        base = env.cwd / Path(output).expanduser() if output else _project(opened) / "datasets"
        branches = [_branch(opened.stores, opened.reader, opened.thread, end, warnings) for end in _ends(opened)]
        examples = _told_apart(
            [_examples(opened, branch, expect, check or (), split, dataset, warnings) for branch in branches]
        )
        tests = find_graph(opened, _ends(opened)[-1], RunOptions(graph=graph)) if chosen == "pytest" else None
        report = write(
            _with_rerun(_shown(opened, examples), configurable or (), stub or (), resume or (), memory or ()),
            base=base,
            dataset=dataset,
            format=chosen,
            graph=_relative(tests.graph, opened) if tests else None,
            sandbox=_relative(tests.sandbox, opened) if tests and tests.sandbox else None,
            project=_project(opened),
            bad_results=_bad_results(opened, branches) if bad_result else (),
            dry_run=dry_run,
        )
        _tell(
            opened,
            replace(
                report,
                warnings=tuple(dict.fromkeys(warnings)),
                masked=opened.is_masked,
                masking=opened.mask_report(),
            ),
        )


def _tell_masking(opened: Opened, asked: bool | None) -> None:
    """Says where personal data stays in, and where it went before.

    Raises:
        Refused: `--no-mask`, and the thread was masked when it was copied: what it began with is read elsewhere, and
            would not fit it.
    """
    if not opened.is_masked:
        say(opened.env, "not masked: the dataset holds personal data as the thread does")
    elif asked is False:
        raise Refused(
            f"{opened.target} is masked already: what was there before does not come back", hint="leave --no-mask out"
        )
    elif opened.was_masked:
        say(opened.env, f"{opened.target} is masked already")


def _tell(opened: Opened, report: ExportReport) -> None:
    for text in report.warnings:
        say(opened.env, f"warning: {text}")
    emit(
        opened.env,
        Answer(
            human=lambda width: rendering.human(report, width),
            plain=lambda: rendering.plain(report),
            document=lambda: rendering.as_document(report),
        ),
    )


def _ends(opened: Opened) -> tuple[Resolution, ...]:
    pair = opened.resolve_range()
    return (pair.left, pair.right) if pair else (opened.resolve(),)


def _branch(stores: Stores, reader: Reader, thread: str, end: Resolution, warnings: list[str]) -> Branch:
    """Returns the branch that ends at a checkpoint, with what it was copied from where that can be read."""
    from agentctl.datasets.branch import Branch, is_cut
    from agentctl.stores.reading.lineage import read_lineage

    branch = Branch(reader, read_lineage(reader, thread, end.ns, end.id))
    if not is_cut(branch.lineage):
        return branch
    return replace(branch, origin=_origin(stores, branch, warnings))


def _origin(stores: Stores, branch: Branch, warnings: list[str]) -> Branch | None:
    from agentctl.datasets.branch import ORIGIN, Branch, is_cut, origin_lineage

    text = branch.metadata(ORIGIN)
    gap = f"the input and the steps before {branch.lineage.rows[0].id} are not in the example"
    if not text:
        warnings.append(f"{branch.thread} begins in the middle and does not say where it was copied from: {gap}")
        return None
    try:
        source = open_in(stores, text)
        lineage = origin_lineage(source.reader, source.thread, branch.lineage)
    except AgentctlError as error:
        warnings.append(f"{text}, which {branch.thread} was copied from, cannot be read ({error}): {gap}")
        return None
    if lineage is None:
        warnings.append(f"{text} does not hold what {branch.thread} was copied from: {gap}")
        return None
    origin = Branch(source.reader, lineage)
    return replace(origin, origin=_origin(stores, origin, warnings)) if is_cut(lineage) else origin


def _examples(
    opened: Opened,
    branch: Branch,
    expect: str | None,
    checks: Sequence[str],
    split: str,
    dataset: str,
    warnings: list[str],
) -> tuple[Example, ...]:
    """Returns the examples of a branch with what is right for its last turn."""
    from agentctl.datasets.examples import read_examples
    from agentctl.datasets.export import with_reference
    from agentctl.experiments.judging.checks import parse_checks

    parse_checks(checks, opened.env.cwd)
    expected, value = _expected(opened, expect, split, warnings)
    own = branch.is_correction and expect is None
    if own and not checks:
        _refuse_unfinished(branch, str(opened.target))
    words = ["agentctl", *opened.env.argv]
    return with_reference(
        read_examples(branch, split=split),
        expected=expected,
        expected_value=value,
        check=[_from_project(text, opened) for text in checks],
        own_outcome=own,
        source=expect or (str(opened.target) if own else None),
        hint=f"{shlex.join(words)} --check 'reply contains TEXT', or --expect TARGET, or --expect @FILE",
    )


def _expected(
    opened: Opened, expect: str | None, split: str, warnings: list[str]
) -> tuple[Example | None, str | dict[str, object] | None]:
    """Returns the expected outcome: a turn of another branch, or what a file says."""
    from agentctl.datasets.examples import read_examples

    if expect is None:
        return None, None
    if expect.startswith("@"):
        return None, _read_expected(opened.env.cwd / Path(expect[1:]).expanduser())
    other = open_in(opened.stores, expect)
    branch = _branch(opened.stores, other.reader, other.thread, other.resolve(), warnings)
    _refuse_unfinished(branch, expect)
    return read_examples(branch, split=split)[-1], None


def _read_expected(path: Path) -> str | dict[str, object]:
    """Returns the reply that a text file holds, or the object or text of a JSON file."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--expect @{path.name} cannot be read: {error}") from error
    try:
        value = jsontext.parse(text)
    except ValueError:
        return text.strip()
    return value if isinstance(value, dict) else value if isinstance(value, str) else text.strip()


def _refuse_unfinished(branch: Branch, target: str) -> None:
    """Refuses to take the outcome of a run that did not end as right.

    Raises:
        Refused: something would still run at the branch's tip.
    """
    from agentctl.stores.reading.steps import StepReader

    tip = branch.lineage.tip
    waiting = StepReader(branch.reader, branch.thread, branch.ns).next([tip.id]).get(tip.id, ())
    if waiting:
        raise Refused(
            f"{target} has no outcome to take as right: it did not end, next is {', '.join(waiting)}",
            hint="--expect with a branch that ended, or --check 'reply contains TEXT'",
        )


def _told_apart(branches: Sequence[tuple[Example, ...]]) -> tuple[Example, ...]:
    """Returns the examples of several branches: turns that they share once, different outcomes of a turn each."""
    from agentctl.datasets.examples import example_id

    kept: dict[str, Example] = {}
    for examples in branches:
        for example in examples:
            other = kept.get(example.id)
            if other is not None and other.source.checkpoint != example.source.checkpoint:
                apart = example_id(example.source.thread, "", example.id, branch=example.source.branch)
                example = replace(example, id=apart)
            kept[example.id] = example
    return tuple(kept.values())


def _shown(opened: Opened, examples: Sequence[Example]) -> tuple[Example, ...]:
    """Returns the examples with tokens in place of personal names of the threads that they were taken from."""
    return tuple(
        replace(
            example,
            source=replace(example.source, thread=opened.shown(example.source.thread)),
            reference=replace(
                example.reference, source=example.reference.source and opened.shown(example.reference.source)
            ),
        )
        for example in examples
    )


def _with_rerun(
    examples: Sequence[Example],
    configurable: Sequence[str],
    stubs: Sequence[str],
    answers: Sequence[str],
    memory: Sequence[str],
) -> tuple[Example, ...]:
    from agentctl.datasets.export import with_rerun
    from agentctl.experiments import settings as chosen
    from agentctl.experiments.forking.forms import parse_forms
    from agentctl.records.rows import MemoryItem

    return with_rerun(
        examples,
        configurable=chosen.parse_configurable(configurable),
        stubs=chosen.parse_stubs(stubs),
        answers=list(chosen.parse_answers(answers)),
        memory=[MemoryItem(form.namespace, form.key, form.value) for form in parse_forms(memory=memory).memory],
    )


def _bad_results(opened: Opened, branches: Sequence[Branch]) -> tuple[BadResult, ...]:
    from agentctl.datasets.recorded import bad_results, read_sites

    found = tuple(result for branch in branches for result in bad_results(branch, read_sites(branch)))
    if not found:
        raise UsageError(
            f"--bad-result: {opened.target} has no tool result that differs from the thread it was copied from",
            hint="export a fork made with --answer or --patch",
        )
    return found


def _project(opened: Opened) -> Path:
    return opened.config.file.parent if opened.config.file else opened.env.cwd


def _relative(code: str, opened: Opened) -> str:
    """Returns `path.py:attr` with the path relative to the project folder; a dotted module stays as it is."""
    place, _, attribute = code.rpartition(":")
    return f"{Path(os.path.relpath(place, _project(opened))).as_posix()}:{attribute}" if os.sep in place else code


def _from_project(check: str, opened: Opened) -> str:
    """Returns a check as the tests find it: a file relative to the project folder, an inline form as it is."""
    path = opened.env.cwd / check
    if "\n" in check or len(check) >= 256 or not path.is_file():
        return check
    return Path(os.path.relpath(path, _project(opened))).as_posix()
