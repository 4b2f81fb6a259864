"""Column roles: which column of a golden file plays which part, by its own name or by an alias, shown and correctable.

Roles: ``item_id source_id system_id source context target references split annotator_id``, for labels
``human_<aspect>`` (the gold label), ``ann_<aspect>`` or ``ann_<panel>_<aspect>`` (lists of individual ratings),
``annotators`` and ``annotators_<aspect>`` (who gave them, in the same order), ``metric_<name>``, and for long files
``aspect`` and ``value``.  A role's own name always wins over an alias; nothing is guessed in silence: the proposal
says which roles were found exactly, which by alias, and which columns it leaves unused.
"""

from __future__ import annotations

import re
from collections import abc
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

from core.data.cells import Comma
from core.errors import UsageError
from core.records import ItemKind

Layout = Literal["wide", "long"]
How = Literal["exact", "alias", "corrected"]
"""How the column of a role was found: by its own name, by another usual one, or by a person."""

HUMAN, ANN, METRIC, ANNOTATORS = "human_", "ann_", "metric_", "annotators"
PLAIN_ROLES: tuple[str, ...] = (
    "item_id",
    "source_id",
    "system_id",
    "source",
    "context",
    "target",
    "references",
    "split",
    "annotator_id",
    "aspect",
    "value",
    ANNOTATORS,
)
LABEL_ROLES = ("aspect", "value", "annotator_id")

CONVERSATION_NAMES = frozenset(
    "dialogue dialog conversation messages history dialogue_history dialog_history chat chat_history turns".split()
)
DATA_NAMES = frozenset(
    "mr meaning_representation data triples tripleset triple_set table structured_data record".split()
)

ALIASES: abc.Mapping[str, tuple[str, ...]] = {
    "item_id": tuple("id uid example_id sample_id instance_id row_id idx index".split()),
    "source_id": tuple(
        "doc_id document_id article_id group group_id dialogue_id dialog_id conversation_id prompt_id "
        "question_id".split()
    ),
    "system_id": tuple("system system_name model model_id model_name generator".split()),
    "target": tuple(
        "summary response output hypothesis prediction candidate generation completion answer reply generated_text "
        "system_output model_output decoded simplification translation text".split()
    ),
    "source": tuple(
        "document article source_text src input input_text prompt question instruction original passage".split()
    )
    + tuple(sorted(CONVERSATION_NAMES))
    + tuple(sorted(DATA_NAMES)),
    "context": tuple("fact facts knowledge persona background evidence grounding".split()),
    "references": tuple("reference refs ref reference_summary gold_summary reference_text gold_text".split()),
    "split": ("fold", "subset", "partition"),
    "annotator_id": tuple("annotator rater rater_id worker worker_id coder labeler labeller user_id".split()),
    "aspect": tuple("dimension criterion quality_dimension attribute".split()),
    "value": tuple("label score rating human_score human_rating human_label".split()),
}
KNOWN_ASPECTS = frozenset(
    "coherence consistency fluency relevance overall quality naturalness informativeness engagingness groundedness "
    "understandability grammar semantics adequacy faithfulness factuality simplicity meaning helpfulness correctness "
    "accuracy clarity conciseness completeness specificity interestingness".split()
)


@dataclass(frozen=True, slots=True)
class RatingColumn:
    """One column of individual ratings: of which aspect, by which panel ("" when not named), named by which column."""

    column: str
    aspect: str
    panel: str = ""
    raters_column: str | None = None


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
        """UsageError for a name that is no role in this kind of file."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mapping(ColumnRoles):
    """The roles of a golden file.  `unused` columns play no part; `notes` say why where it is not plain.

    `layout` "wide" has one row an item, "long" one row a rating.  `kind` follows from the texts unless a person gave
    it (`kind_given`).  `comma`: what a person said of commas in numbers, None where the columns speak for themselves.
    """

    kind: ItemKind = "source_target"
    kind_given: bool = False
    comma: Comma | None = None
    notes: tuple[str, ...] = ()

    @property
    def aliased(self) -> tuple[str, ...]:
        """Roles whose columns have another usual name."""
        return tuple(role for role, how in self.found.items() if how == "alias")

    @property
    def layout(self) -> Layout:
        by_rater = "annotator_id" in self.roles and any(role.startswith(HUMAN) for role in self.roles)
        return "long" if by_rater or {"aspect", "value"} <= self.roles.keys() else "wide"

    @property
    def gold_columns(self) -> dict[str, str]:
        """Aspect → column of its gold labels (wide layout)."""
        return {role[len(HUMAN) :]: column for role, column in self.roles.items() if role.startswith(HUMAN)}

    @property
    def metric_columns(self) -> dict[str, str]:
        """Metric name → column."""
        return {role[len(METRIC) :]: column for role, column in self.roles.items() if role.startswith(METRIC)}

    @property
    def rating_columns(self) -> tuple[RatingColumn, ...]:
        """The columns of individual ratings; ``ann_expert_x`` is the panel "expert" of aspect "x" if there is one."""
        aspects = set(self.gold_columns)
        ratings: list[RatingColumn] = []
        for role in sorted((r for r in self.roles if r.startswith(ANN)), key=lambda r: (len(r), r)):
            name = role[len(ANN) :]
            panel, aspect = _panel_of(name, aspects)
            aspects.add(aspect)
            raters = self.roles.get(f"{ANNOTATORS}_{name}") or (self.roles.get(ANNOTATORS) if not panel else None)
            ratings.append(RatingColumn(self.roles[role], aspect, panel, raters))
        return tuple(sorted(ratings, key=lambda r: (r.aspect, r.panel)))

    @property
    def aspects(self) -> tuple[str, ...]:
        """Aspects of a wide file, in column order: those with gold labels, then those with ratings only."""
        order = {column: place for place, column in enumerate(self.columns)}
        rated, gold = {rating.aspect: rating.column for rating in self.rating_columns}, self.gold_columns
        rest = sorted((aspect for aspect in rated if aspect not in gold), key=lambda a: order[rated[a]])
        return (*sorted(gold, key=lambda a: order[gold[a]]), *rest)

    def check_role(self, role: str) -> None:
        """UsageError for a name that is no role in a golden file."""
        if not is_role(role):
            raise UsageError(
                f"{role!r} is no role; allowed: {', '.join(PLAIN_ROLES)}, human_<aspect>, ann_<aspect>, metric_<name>."
            )

    def with_kind(self, kind: ItemKind) -> Mapping:
        """The same mapping with the item kind a person chose."""
        return replace(self, kind=kind, kind_given=True)

    def as_json(self) -> dict[str, Any]:
        """What was mapped and how, for ``check --json`` and the mapping form."""
        by = {how: [role for role, way in self.found.items() if way == how] for how in get_args(How)}
        return {
            "roles": dict(self.roles),
            "exact": by["exact"],
            "aliased": by["alias"],
            "corrected": by["corrected"],
            "unused": list(self.unused),
            "layout": self.layout,
            "kind": self.kind,
            "comma": self.comma,
            "notes": list(self.notes),
        }


def is_role(name: str) -> bool:
    """Whether `name` is a role a column can play."""
    if name in PLAIN_ROLES:
        return True
    prefixes = (HUMAN, ANN, METRIC, f"{ANNOTATORS}_")
    return any(name.startswith(prefix) and len(name) > len(prefix) for prefix in prefixes)


def folded(column: str) -> str:
    """A column name in the form aliases are compared in: ``"Item ID"``, ``"itemId"`` → ``"item_id"``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _panel_of(name: str, aspects: abc.Set[str]) -> tuple[str, str]:
    """("expert", "coherence") for "expert_coherence" when coherence is an aspect, else ("", name)."""
    if name not in aspects:
        for cut in (match.start() for match in re.finditer("_", name)):
            if cut and name[cut + 1 :] in aspects:
                return name[:cut], name[cut + 1 :]
    return "", name
