"""The roles of columns: their names, and which column plays which; shown and correctable.

Roles of a golden file: ``item_id source_id system_id source context target references split annotator_id``, for labels
``human_<aspect>`` (the gold label), ``ann_<aspect>`` or ``ann_<panel>_<aspect>`` (lists of individual ratings),
``annotators`` and ``annotators_<aspect>`` (who gave them, in the same order), ``metric_<name>``, and for long files
``aspect`` and ``value``.  Files of verdicts have roles of their own (`core.data.reply_files`), found and corrected in
the same way.  `core.data.proposal` finds the roles of a file.
"""

from __future__ import annotations

import itertools
import re
from collections import abc
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

from core.data.cells import folded
from core.data.scale import Values
from core.errors import UsageError
from core.records import ItemKind
from core.texts import visible_name

Layout = Literal["wide", "long"]
How = Literal["exact", "alias", "content", "corrected"]
"""How the column of a role was found: by its own name, by another usual one, by what it holds, or by a person."""

HUMAN, ANN, METRIC, ANNOTATORS = "human_", "ann_", "metric_", "annotators"
LABEL_ROLES = ("aspect", "value", "annotator_id")
PLAIN_ROLES: tuple[str, ...] = (
    *("item_id", "source_id", "system_id", "source", "context", "target", "references", "split"),
    *("annotator_id", "aspect", "value", ANNOTATORS),
)
LONGEST_ASPECT = 100
"""Characters in the name of an aspect: every criterion, chart and report repeats it."""
_NO_NAME = "human avg mean average median gold annotated rating ratings score scores label labels value likert".split()
_AROUND = re.compile(rf"^(?:{'|'.join(_NO_NAME)})_|_(?:{'|'.join(_NO_NAME)}|\d+_\d+)$")

CONVERSATION_NAMES = frozenset(
    "dialogue dialog conversation messages history dialogue_history dialog_history chat chat_history turns".split()
)
DATA_NAMES = frozenset(
    "mr meaning_representation data triples tripleset triple_set table structured_data record".split()
)
"""Columns that hold a conversation or structured data by their name alone."""

TEXTS_OF_PAIRS = "text response answer output completion summary candidate generation reply target message".split()
PAIRS = tuple((f"{text}_{first}", f"{text}_{second}") for first, second in ("ab", "12") for text in TEXTS_OF_PAIRS)
"""Usual names of two texts, of which people prefer one; `pair_in` finds more."""
Sides = tuple[str, str]
SIDES: tuple[Sides, ...] = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"))
_FORMS = ("{text}_{side}", "{side}_{text}", *(f"{who}_{{side}}_{{text}}" for who in ("model", "system", "assistant")))

ALIASES: abc.Mapping[str, tuple[str, ...]] = {
    "item_id": tuple("id uid example_id sample_id instance_id row_id idx index index_level_0".split()),
    "source_id": tuple(
        "doc_id document_id article_id group group_id dialogue_id dialog_id conversation_id prompt_id "
        "question_id".split()
    ),
    "system_id": tuple("system system_name model model_id model_name generator".split()),
    "target": (
        *"summary response output hypothesis prediction candidate generation completion answer reply".split(),
        *"generated_text system_output model_output decoded simplification translation text".split(),
        *(first for first, _ in PAIRS),
    ),
    "source": (
        *"document article source_text src input input_text prompt question instruction original passage".split(),
        *sorted(CONVERSATION_NAMES),
        *sorted(DATA_NAMES),
    ),
    "context": (
        *"fact facts knowledge persona background evidence grounding".split(),
        *(second for _, second in PAIRS),
    ),
    "references": tuple("reference refs ref reference_summary gold_summary reference_text gold_text".split()),
    "split": ("fold", "subset", "partition"),
    "annotator_id": tuple("annotator rater rater_id worker worker_id coder labeler labeller user_id".split()),
    "aspect": tuple("dimension criterion quality_dimension attribute".split()),
    "value": tuple("label score rating human_score human_rating human_label".split()),
}
CHOSEN = frozenset(("chosen", "rejected"))
"""Columns of a preferred text and the other."""
KNOWN_ASPECTS = frozenset(
    "coherence consistency fluency relevance overall quality naturalness informativeness engagingness groundedness "
    "understandability grammar semantics adequacy faithfulness factuality simplicity meaning helpfulness correctness "
    "accuracy clarity conciseness completeness specificity interestingness".split()
)
MODELS = re.compile(
    "(gpt|chatgpt|claude|llama|gemini|mistral|mixtral|qwen|deepseek|palm|openai|llm|ai|auto|automatic|machine|rouge|bleu|"
    "meteor|bert|bart|bertscore|geval)[a-z]*[0-9]*"
)
"""Names of what rates without being a person."""


@dataclass(frozen=True)
class ColumnRoles:
    """Role → column, how each was found, and the `columns` of the file in their order."""

    roles: abc.Mapping[str, str]
    columns: tuple[str, ...]
    found: abc.Mapping[str, How] = field(default_factory=dict)

    @property
    def unused(self) -> tuple[str, ...]:
        used = set(self.roles.values())
        return tuple(column for column in self.columns if column not in used)

    def found_by(self, how: How) -> tuple[str, ...]:
        """The roles whose columns were found so."""
        return tuple(role for role, way in self.found.items() if way == how)

    def with_role(self, role: str, column: str | None) -> Self:
        """With a person's correction: `column` plays `role` (None: nothing does) and leaves any role it had.

        UsageError for an unknown role or column.
        """
        self.check_role(role)
        if column is not None and column not in self.columns:
            raise UsageError(f"The file has no column {column[:60]!r}; it has: {', '.join(self.columns)[:400]}.")
        if column is not None and self.roles.get(role) == column:
            return self
        roles = {r: c for r, c in self.roles.items() if r != role and c != column}
        found = {r: how for r, how in self.found.items() if r in roles}
        if column is not None:
            roles[role], found[role] = column, "corrected"
        return replace(self, roles=roles, found=found)

    def check_role(self, role: str) -> None:
        """Raise UsageError for a name that is no role in this kind of file."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mapping(ColumnRoles):
    """The roles of a golden file.  `unused` columns play no part; `notes` say why where it is not plain.

    `layout` "wide" has one row per item, "long" one row per rating.  `kind` follows from the texts unless a person gave
    it (`kind_given`).  `values`: what a person said of codes, choices and which end is best.
    `ranks`: the aspects whose labels are ranks, as a person said; None where their names speak for themselves.
    """

    kind: ItemKind = "source_target"
    kind_given: bool = False
    values: Values = field(default_factory=Values)
    ranks: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        by_rater = "annotator_id" in self.roles and any(role.startswith(HUMAN) for role in self.roles)
        return "long" if by_rater or {"aspect", "value"} <= self.roles.keys() else "wide"

    @property
    def gold_columns(self) -> dict[str, str]:
        """Aspect → column of its gold labels (wide layout)."""
        return self._behind(HUMAN)

    @property
    def metric_columns(self) -> dict[str, str]:
        """Metric name → column."""
        return self._behind(METRIC)

    def _behind(self, prefix: str) -> dict[str, str]:
        return {role.removeprefix(prefix): column for role, column in self.roles.items() if role.startswith(prefix)}

    @property
    def rating_columns(self) -> list[tuple[str, str, str, str | None]]:
        """Column, aspect, panel ("" for none) and column of raters of the individual ratings.

        ``ann_expert_x`` is of the panel "expert" of aspect "x" if there is such an aspect.
        """
        aspects = set(self.gold_columns)
        ratings: list[tuple[str, str, str, str | None]] = []
        for name, column in sorted(self._behind(ANN).items(), key=lambda entry: (len(entry[0]), entry[0])):
            cuts = (match.start() for match in re.finditer("_", name) if name not in aspects)
            cut = next((cut for cut in cuts if cut and name[cut + 1 :] in aspects), None)
            panel, aspect = ("", name) if cut is None else (name[:cut], name[cut + 1 :])
            aspects.add(aspect)
            raters = self.roles.get(f"{ANNOTATORS}_{name}") or (None if panel else self.roles.get(ANNOTATORS))
            ratings.append((column, aspect, panel, raters))
        return sorted(ratings, key=lambda rating: rating[1:3])

    @property
    def aspects(self) -> tuple[str, ...]:
        """Aspects of a wide file, in column order: those with gold labels, then those with ratings only."""
        gold, order = self.gold_columns, self.columns.index
        rated = {aspect: column for column, aspect, _, _ in self.rating_columns if aspect not in gold}
        return (*sorted(gold, key=lambda a: order(gold[a])), *sorted(rated, key=lambda a: order(rated[a])))

    def check_role(self, role: str) -> None:
        """Raise UsageError for a name that is no role in a golden file."""
        if not is_role(role):
            raise UsageError(
                f"{role!r} is no role; allowed: {', '.join(PLAIN_ROLES)}, human_<aspect>, ann_<aspect>, metric_<name>."
            )

    def renamed(self, aspect: str, name: str) -> Mapping:
        """With an aspect under the name a person gave it; its ratings and raters go along.

        UsageError for a name that is empty, longer than 100 characters, or another aspect's.
        """
        trimmed = " ".join(visible_name(name).split())
        if trimmed == aspect:
            return self
        if not 1 <= len(trimmed) <= LONGEST_ASPECT:
            came = f"this one has {len(trimmed)}" if trimmed else "none came"
            raise UsageError(f"The name of an aspect has 1 to {LONGEST_ASPECT} characters; {came}.")
        if trimmed in self.aspects and (trimmed in self.gold_columns or aspect not in self.gold_columns):
            raise UsageError(f"There is an aspect {trimmed!r} already; give {aspect[:100]!r} another name.")
        own = {column for column, of, _, _ in self.rating_columns if of == aspect} | {self.gold_columns.get(aspect)}
        own |= {raters for _, of, _, raters in self.rating_columns if of == aspect}
        new = {
            role: role.removesuffix(aspect) + trimmed
            for role, column in self.roles.items()
            if column in own and role not in PLAIN_ROLES
        }
        roles = {new.get(role, role): column for role, column in self.roles.items()}
        return replace(self, roles=roles, found={new.get(role, role): how for role, how in self.found.items()})

    def with_plain_names(self) -> Mapping:
        """Every aspect under `plain_name` of its own, as far as no two come out the same: a proposal to be shown."""
        mapping = self
        for aspect in self.aspects:
            with suppress(UsageError):
                mapping = mapping.renamed(aspect, plain_name(aspect))
        return mapping

    def with_kind(self, kind: ItemKind) -> Mapping:
        """The same mapping with the item kind a person chose."""
        return replace(self, kind=kind, kind_given=True)

    def with_ranks(self, ranks: abc.Iterable[str]) -> Mapping:
        """With the aspects whose labels a person says are ranks, each by its name or by its column's."""
        mapping, aspects = self, list[str]()
        of_column = {column: aspect for aspect, column in self.gold_columns.items()}
        for name in ranks:
            aspects.append(of_column.get(name, name).removeprefix(HUMAN).removeprefix(ANN))
            if name in self.unused and "value" not in self.roles:
                mapping = mapping.with_role(HUMAN + aspects[-1], name)
        return replace(mapping, ranks=tuple(aspects))

    def as_json(self) -> dict[str, Any]:
        """What was mapped and how, for ``check --json`` and the mapping form."""
        names = {"exact": "exact", "alias": "aliased", "content": "guessed", "corrected": "corrected"}
        return {
            "roles": dict(self.roles),
            **{names[how]: list(self.found_by(how)) for how in get_args(How)},
            "unused": list(self.unused),
            "layout": self.layout,
            "kind": self.kind,
            "ranks": None if self.ranks is None else list(self.ranks),
            "values": list(self.values.answers),
            "notes": list(self.notes),
        }


def is_role(name: str) -> bool:
    """Whether `name` is a role a column can play."""
    prefixes = (HUMAN, ANN, METRIC, f"{ANNOTATORS}_")
    return name in PLAIN_ROLES or any(name.startswith(prefix) and name != prefix for prefix in prefixes)


def plain_name(column: str) -> str:
    """What a column of labels is about: ``"coherence_avg"`` and ``"Coherence (1-5)"`` are both "coherence"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    name = re.sub(r"[\W_]+", "_", spaced.lower()).strip("_") or column
    while (shorter := _AROUND.sub("", name)) not in (name, ""):
        name = shorter
    return name


def by_name(
    columns: abc.Iterable[str], names: abc.Iterable[str], spelled: abc.Callable[[str], str] = folded
) -> list[str]:
    """The columns that have one of `names` when they are `spelled` alike, in the order of the names."""
    alike: dict[str, list[str]] = {}
    for column in columns:
        alike.setdefault(spelled(column), []).append(column)
    return [column for name in names for column in alike.get(name, ())]


def first_named(columns: abc.Iterable[str], role: str) -> list[str]:
    """The column of a role by its own or a usual other name, alone in a list; empty where there is none."""
    return by_name(columns, (role, *ALIASES[role]))[:1]


def side_key(name: str) -> str:
    """`folded`, with digits at the end as a word of their own: ``"Answer1"`` → ``"answer_1"``."""
    return re.sub(r"(?<=[a-z])(?=[0-9]+$)", "_", folded(name))


def pair_in(columns: abc.Iterable[str]) -> tuple[tuple[str, str], Sides] | None:
    """The columns of two texts and how they tell them apart, ("a", "b"), ("1", "2") …; None without both."""
    named = {side_key(column): column for column in reversed(list(columns))}
    for sides, form, text in itertools.product(SIDES, _FORMS, TEXTS_OF_PAIRS):
        first, second, third = (form.format(side=side, text=text) for side in (*sides, "2"))
        if first in named and second in named and (sides != ("0", "1") or third not in named):
            return (named[first], named[second]), sides
    return None


# ── what a person names ──────────────────────────────────────────────────────────────────────────────────────


def chosen_roles(
    columns: abc.Collection[str], given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> dict[str, str]:
    """Role → column: all that a person has `given`, and what of the `kept` mapping of another file fits this one.

    A kept column counts where the file has it and has no column with the name of the role.
    """
    own = {folded(column) for column in columns}
    own |= {"references"} if "reference" in own else set()
    fitting = {
        role: column
        for role, column in kept.items()
        if is_role(role) and column in columns and role not in own and column not in given.values()
    }
    return fitting | dict(given)


def read_map(given: abc.Mapping[str, str] | str | abc.Sequence[str] | None) -> dict[str, str]:
    """Role → column, of ``"target=agent_answer,source=question"``, several such texts, or a mapping as it is.

    A comma inside a column's name is kept where what follows it is not ROLE=.  UsageError for any other form.
    """
    if given is None or isinstance(given, abc.Mapping):
        return dict(given or {})
    roles: dict[str, str] = {}
    for text in (given,) if isinstance(given, str) else given:
        for part in re.split(r",(?=\s*[^\s=,]+\s*=)", text):
            role, _, column = (piece.strip() for piece in part.partition("="))
            if not role or not column:
                raise UsageError(f"--map takes ROLE=COLUMN, such as target=agent_answer; {part[:60]!r} came.")
            if roles.setdefault(role, column) != column:
                raise UsageError(f"--map names two columns for {role[:60]!r}. Name one.")
    return roles
