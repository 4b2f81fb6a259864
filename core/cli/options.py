"""Options that several commands share."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from core.cli.output import wants_json, wants_verbose
from core.errors import UsageError
from core.records import check_settings, setting

if TYPE_CHECKING:
    from core.judging.scoring_styles import Asking, Style
    from core.providers.completions import ReplyStore
    from core.records import GoldenSet, Scale, Task
    from core.settings import Settings
    from core.store.store import Store
    from core.verdicts import Verdicts

AspectOption = Annotated[str, typer.Option("--aspect", help="Aspect to use, from the column human_<aspect>.")]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", help="Columns for roles, such as target=agent_answer,source=question,human_quality=stars."),
]
VERDICTS = "File of verdicts (columns item_id, score) or replies (columns item_id, responses)."
VerdictsFile = Annotated[Path, typer.Argument(help=VERDICTS)]
AcceptEdited = Annotated[
    bool, typer.Option("--accept-edited", help="Accept a judge file that was edited after its export.")
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


commands = typer.Typer(add_completion=False)
FLAGS = {"verbose": "Print all details and cautions.", "json": "Print one JSON object on standard output."}
"""Options of all commands (`wants_verbose`, `wants_json`)."""


def command(panel: str, name: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a function as a command in the --help panel `panel`.

    The command is called `name`; "" means the name of the function. `with_options` makes its options.
    """
    return lambda function: commands.command(name or None, rich_help_panel=panel)(with_options(function))


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Convert a function to a command line command.

    `FLAGS` and the fields of dataclass parameters become options. A field's option comes from its own `typer.Option`,
    or else from its name, default and help (`core.records`).
    """
    hints = get_type_hints(function, include_extras=True)
    records: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in records:
            parameters += [_option(records[name], each) for each in _chosen(records[name])]
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    for name, help_ in FLAGS.items():
        hint = Annotated[bool, typer.Option(f"--{name}", help=help_)]
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=hint))

    def run(**given: Any) -> None:
        wants_json.set(given.pop("json"))
        wants_verbose.set(given.pop("verbose"))
        made = {}
        for name, record in records.items():
            own = {each.name: given.pop(each.name) for each in _chosen(record)}
            own |= {key: tuple(own[key] or ()) for key, hint in get_type_hints(record).items() if _is_many(hint)}
            if own.get("level") == "auto":
                own["level"] = None
            made[name] = record(**own)
            check_settings(made[name])
        function(**given, **made)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    return run


def _is_many(hint: Any) -> bool:
    return get_origin(hint) is tuple and get_args(hint)[1:] == (...,)


def _chosen(record: type[Any]) -> list[Field[Any]]:
    """Return the fields that have their own option or a help text."""
    hints = get_type_hints(record, include_extras=True)
    return [e for e in fields(record) if get_origin(hints[e.name]) is Annotated or e.metadata.get("help")]


def _option(record: type[Any], each: Field[Any]) -> inspect.Parameter:
    hint, default = get_type_hints(record, include_extras=True)[each.name], each.default
    if each.name == "level":
        hint, default = Literal["auto", "dataset", "sample", "system"], "auto"
    if _is_many(hint):
        hint, default = list[get_args(hint)[0]] | None, None  # type: ignore[misc]
    if get_origin(hint) is not Annotated:
        flag = each.metadata.get("flag") or "--" + each.name.replace("_", "-")
        names = f"{flag}/{flag.replace('--', '--no-', 1)}" if default is True else flag
        hint = Annotated[hint, typer.Option(names, help=each.metadata["help"])]
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@dataclass(frozen=True, kw_only=True)
class GoldenFile:
    """The file of a golden set, and options for reading it."""

    golden: Annotated[Path, typer.Argument(help="Golden set file: CSV, JSONL (.gz), Parquet or XLSX.")]
    values: tuple[str, ...] = setting(
        (),
        "How to read values. Missing labels: missing=99, or missing=none if every number is a label. Order: best=low "
        "if the lowest label is the best. Repeated ids: ids=number numbers them, ids=first keeps only the first row. "
        "For one aspect only: missing=ASPECT:99. Rename an aspect: aspect=OLD:NEW. You can repeat this option.",
    )
    mapped: MapOption = None

    def load(self, scales: Mapping[str, Scale] | None = None, kept: Mapping[str, str] | None = None) -> GoldenSet:
        """Read the golden set.

        `scales` maps aspects to their confirmed scales; the scales of other aspects are detected. `kept` is the column
        mapping of an earlier file.
        """
        from core.data import load_golden

        return load_golden(self.golden, mapping=self.mapped, kept=kept, scales=scales, values=self.values or None)


@dataclass(frozen=True)
class SeenOptions:
    """Options for items that were used to choose or fit the judge."""

    judge_file: tuple[Path, ...] = setting(
        (),
        "Path of a judge file. Concord leaves out the items that this judge was calibrated on, and the items that the "
        "verdicts mark as calibration items. You can repeat this option.",
    )
    all_items: bool = setting(False, "Keep items that the judge was calibrated on. The result is then optimistic.")


@dataclass(frozen=True)
class JudgeFileOptions:
    """Options for opening a judge file."""

    judge: str = setting(
        "",
        "Judge to use instead of the judge in the file. For repeval.yaml, say where the model is: hf:ID_OR_PATH.",
    )
    accept_edited: AcceptEdited = False

    def replies(self, judge_file: Path) -> ReplyStore | None:
        """Return the reply cache for the model of a judge file; None for a judge without a model."""
        from core.judge_files.documents import read_card

        card = read_card(judge_file, accept_edited=self.accept_edited)
        asked = card.get("judge") or card.get("fusion", {}).get("judge") or {"spec": ""}
        return reply_cache(self.judge or str(asked["spec"]))


@dataclass(frozen=True)
class StyleOptions:
    """Options for the style of a judge, except the form of the reply."""

    samples: int | None = setting(None, "Number of replies to average for each score.")
    temperature: str = setting(
        "",
        "Sampling temperature (default: 0 for one sample, 1 for several samples), or none for the model's own "
        "temperature.",
    )
    weighted: bool = setting(
        False, "With --form score_only, weight the score by token probabilities if the endpoint returns them."
    )
    steps: bool = setting(False, "Ask the model to write evaluation steps first.")
    with_references: bool = setting(
        False,
        "Show the judge each item's references. References cost prompt tokens, and items without references "
        "stay unscored.",
    )
    persona: Literal["none", "helpful", "annotator"] | None = setting(None, "Persona that the prompt gives the judge.")

    def asked(self, judge: str, form: str | None, **more: Any) -> Asking:
        """Return the options for asking `judge`. Raises UsageError if options conflict."""
        from core.judging.scoring_styles import Asking

        try:
            heat = self.temperature if self.temperature in ("", "none") else float(self.temperature)
        except ValueError as error:
            raise UsageError(
                f"--temperature must be a number from 0 to 2, or none; got {self.temperature!r}."
            ) from error
        return Asking.of(
            judge,
            temperature=heat or None if isinstance(heat, str) else heat,  # type: ignore[arg-type]  # "none"
            steps=self.steps,
            form=form,
            samples=self.samples,
            weighted=self.weighted or None,
            persona=self.persona,
            references=self.with_references or None,
            **more,
        )

    def style(self, judge: str, form: str) -> Style:
        """Return the style for a form of reply; without options, the default style."""
        from core.judging.scoring_styles import Style

        return self.asked(judge, form).style or (Style("score_only", weighted=True) if self.weighted else Style())


@dataclass(frozen=True)
class AskingOptions(StyleOptions):
    """Options for asking a judge."""

    definition: str = setting("", "What the aspect means, in one sentence.")
    level_text: tuple[str, ...] = setting(
        (), "Description of one level of the scale, such as 1='Misses the point.' Repeat the option for each level."
    )
    form: Literal["score_only", "free_text", "stars", "rate_explain", "analyze_rate", "clauses"] | None = setting(
        None,
        "Form of the reply. analyze_rate: first an analysis, then the rating. clauses: a separate rating for each "
        "clause.",
    )
    max_tokens: int | None = setting(
        None,
        "Maximum number of tokens per reply (default: 20 for a score alone, otherwise 512; more for reasoning).",
        low=1,
    )
    effort: str = setting("", "Reasoning effort of the model: low, medium, high, …")
    extra_body: str = setting("", "Extra fields for each request, as a JSON object. They are saved in judge.yaml.")

    def asking(self, judge: str) -> Asking:
        """Return the options for asking `judge`. Raises UsageError if options conflict."""
        return self.asked(judge, self.form, max_tokens=self.max_tokens, effort=self.effort, extra=self.extra_body)

    def task(self, golden: GoldenSet, aspect: str) -> Task:
        """Return the judging task with definition and levels. Raises UsageError if a level is not on the scale."""
        from core.data.split import task_of
        from core.records import Anchor

        task, levels = task_of(golden, aspect, self.definition), dict[float, str]()
        for given in self.level_text:
            value, _, text = given.partition("=")
            try:
                level = float(value)
            except ValueError:
                level = math.nan
            if not task.scale.holds(level) or not text.strip():
                raise UsageError(
                    f"--level-text must be a level on the scale {task.scale} and a text, such as 1='Misses the "
                    f"point.'; got {given[:80]!r}."
                )
            levels[level] = text
        return replace(task, levels=tuple(Anchor(level, text) for level, text in sorted(levels.items())))


def read_scale(text: str) -> Scale:
    """Parse a scale such as ``"1-5"``. Raises UsageError for any other text."""
    from core.records import Scale

    ends = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*-\s*(-?\d+(?:\.\d+)?)\s*", text)
    if ends is None or float(ends[1]) >= float(ends[2]):
        raise UsageError(f"--scale must be LO-HI with LO below HI, such as 1-5; got {text!r}.")
    return Scale(float(ends[1]), float(ends[2]), given=True)


def reply_cache(spec: str) -> ReplyStore | None:
    """Return the store's reply cache for a judge that uses a language model; None for any other judge."""
    return settings_and_store()[1].replies if spec.startswith(("openai:", "hf:")) else None


def settings_and_store() -> tuple[Settings, Store]:
    """Read the settings from the environment, and open the store that they name; return both."""
    from core import projects
    from core.settings import Settings

    settings = Settings.from_environment()
    return settings, projects.open_store(settings)


def read_table(golden: GoldenSet, file: Path, aspect: str) -> tuple[Verdicts, int, list[str]]:
    """Read verdicts on an aspect from a file.

    Returns the verdicts, the number of verdicts on items outside the golden set, and warnings on scores outside the
    scale.
    """
    from core.data.judge_results import as_verdicts, off_scale_words
    from core.data.split import task_of

    task, item_ids = task_of(golden, aspect), frozenset(golden.item_ids)
    verdicts = as_verdicts(file, task)
    unknown = sum(verdict.item_id not in item_ids for verdict in verdicts)
    return verdicts, unknown, off_scale_words(verdicts, task.scale)
