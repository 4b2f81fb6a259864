"""Which column plays which part: by its own name or by an alias, shown and correctable, never guessed in silence.

Roles of a golden file: ``item_id source_id system_id source context target references split annotator_id``, for labels
``human_<aspect>`` (the gold label), ``ann_<aspect>`` or ``ann_<panel>_<aspect>`` (lists of individual ratings),
``annotators`` and ``annotators_<aspect>`` (who gave them, in the same order), ``metric_<name>``, and for long files
``aspect`` and ``value``.  A role's own name always wins over an alias; the proposal says which roles were found
exactly, which by alias, and which columns it leaves unused.  Files of verdicts have roles of their own
(`core.data.verdict_files`), found and corrected in the same way.
"""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

from core.data.cells import AmbiguousCommaError, CellError, Comma, folded, is_no_value, read_list, read_number
from core.data.kinds import CONVERSATION_NAMES, DATA_NAMES, PAIRS, detect_kind, texts_of_pairs
from core.data.values import Values
from core.errors import UsageError
from core.records import ItemKind
from core.texts import is_blank, text_length, visible_name

Rows = abc.Sequence[abc.Mapping[str, Any]]
Layout = Literal["wide", "long"]
How = Literal["exact", "alias", "content", "corrected"]
"""How the column of a role was found: by its own name, by another usual one, by what it holds, or by a person."""

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
LONGEST_ASPECT = 100
"""Characters in the name of an aspect: every criterion, chart and report repeats it."""
_NO_NAME = "human avg mean average median gold annotated rating ratings score scores label labels value likert".split()
_AROUND = re.compile(rf"^(?:{'|'.join(_NO_NAME)})_|_(?:{'|'.join(_NO_NAME)}|\d+_\d+)$")

ALIASES: abc.Mapping[str, tuple[str, ...]] = {
    "item_id": tuple("id uid example_id sample_id instance_id row_id idx index index_level_0".split()),
    "source_id": tuple(
        "doc_id document_id article_id group group_id dialogue_id dialog_id conversation_id prompt_id "
        "question_id".split()
    ),
    "system_id": tuple("system system_name model model_id model_name generator".split()),
    "target": tuple(
        "summary response output hypothesis prediction candidate generation completion answer reply generated_text "
        "system_output model_output decoded simplification translation text".split()
    )
    + tuple(first for first, _ in PAIRS),
    "source": tuple(
        "document article source_text src input input_text prompt question instruction original passage".split()
    )
    + tuple(sorted(CONVERSATION_NAMES))
    + tuple(sorted(DATA_NAMES)),
    "context": tuple("fact facts knowledge persona background evidence grounding".split())
    + tuple(second for _, second in PAIRS),
    "references": tuple("reference refs ref reference_summary gold_summary reference_text gold_text".split()),
    "split": ("fold", "subset", "partition"),
    "annotator_id": tuple("annotator rater rater_id worker worker_id coder labeler labeller user_id".split()),
    "aspect": tuple("dimension criterion quality_dimension attribute".split()),
    "value": tuple("label score rating human_score human_rating human_label".split()),
}
_OF_PAIRS = frozenset(name for pair in PAIRS for name in pair)
CHOSEN = frozenset(("chosen", "rejected"))
"""Columns of a preferred text and the other."""
_HEADINGS = frozenset("title topic subject headline category name url".split())
REMARKS = frozenset(
    "comment comments note notes remark remarks explanation reason rationale feedback justification why".split()
)
"""Of columns in which raters say something about a text."""
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
    `values`: what a person said of codes, choices and which end is best.
    `ranks`: the aspects whose labels are ranks, as a person said; None where their names speak for themselves.
    """

    kind: ItemKind = "source_target"
    kind_given: bool = False
    comma: Comma | None = None
    values: Values = field(default_factory=Values)
    ranks: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def aliased(self) -> tuple[str, ...]:
        """Roles whose columns have another usual name."""
        return tuple(role for role, how in self.found.items() if how == "alias")

    @property
    def guessed(self) -> tuple[str, ...]:
        """Roles whose columns were found by what they hold (`core.data.guess`)."""
        return tuple(role for role, how in self.found.items() if how == "content")

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
    def rating_columns(self) -> tuple[RatingColumn, ...]:
        """The columns of individual ratings; ``ann_expert_x`` is the panel "expert" of aspect "x" if there is one."""
        aspects = set(self.gold_columns)
        ratings: list[RatingColumn] = []
        for role in sorted((r for r in self.roles if r.startswith(ANN)), key=lambda r: (len(r), r)):
            panel, aspect = "", (name := role[len(ANN) :])
            if name not in aspects:
                cuts = [match.start() for match in re.finditer("_", name)]
                found = next((cut for cut in cuts if cut and name[cut + 1 :] in aspects), 0)
                panel, aspect = name[:found], name[found + 1 :] if found else name
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
        new = {HUMAN + aspect: HUMAN + trimmed, f"{ANNOTATORS}_{aspect}": f"{ANNOTATORS}_{trimmed}"}
        for rating in self.rating_columns:
            if rating.aspect == aspect:
                panel = f"{rating.panel}_" if rating.panel else ""
                new[f"{ANN}{panel}{aspect}"] = f"{ANN}{panel}{trimmed}"
                new[f"{ANNOTATORS}_{panel}{aspect}"] = f"{ANNOTATORS}_{panel}{trimmed}"
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

    def as_json(self) -> dict[str, Any]:
        """What was mapped and how, for ``check --json`` and the mapping form."""
        by = {how: [role for role, way in self.found.items() if way == how] for how in get_args(How)}
        return {
            "roles": dict(self.roles),
            "exact": by["exact"],
            "aliased": by["alias"],
            "guessed": by["content"],
            "corrected": by["corrected"],
            "unused": list(self.unused),
            "layout": self.layout,
            "kind": self.kind,
            "comma": self.comma,
            "ranks": None if self.ranks is None else list(self.ranks),
            "values": list(self.values.answers),
            "notes": list(self.notes),
        }


def is_role(name: str) -> bool:
    """Whether `name` is a role a column can play."""
    if name in PLAIN_ROLES:
        return True
    prefixes = (HUMAN, ANN, METRIC, f"{ANNOTATORS}_")
    return any(name.startswith(prefix) and len(name) > len(prefix) for prefix in prefixes)


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


# ── the proposal ─────────────────────────────────────────────────────────────────────────────────────────────


def propose_mapping(columns: abc.Sequence[str], sample_rows: Rows) -> Mapping:
    """The mapping a file most plainly asks for: own names first, then aliases, then the shape of the labels.

    Shapes: `columns` in file order; `sample_rows` some or all rows (they settle the item kind and show which ``ann_``
    columns hold ratings).  Never raises for odd columns: what is not recognised is left in `Mapping.unused`.
    """
    draft = _Draft(tuple(columns), sample_rows)
    draft.take_aspect_and_value()
    draft.take_own_names()
    draft.take_target()
    draft.take_aliases()
    draft.take_labels()
    draft.settle_target()
    draft.settle_raters()
    roles = dict(sorted(draft.roles.items(), key=lambda entry: entry[0].startswith(METRIC)))
    kind = detect_kind(sample_rows, roles)
    return Mapping(roles, draft.columns, draft.found, kind=kind, notes=tuple(draft.notes))


def mapping_of(
    columns: abc.Sequence[str], sample_rows: Rows, given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> Mapping:
    """As `propose_mapping`, with the columns that `chosen_roles` names.  UsageError for an unknown given one."""
    mapping = propose_mapping(columns, sample_rows)
    for role, column in chosen_roles(columns, given, kept).items():
        mapping = mapping.with_role(role, column)
    return mapping if mapping.kind_given else replace(mapping, kind=detect_kind(sample_rows, mapping.roles))


def chosen_roles(
    columns: abc.Collection[str], given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> dict[str, str]:
    """Role → column: all that a person has `given`, and what of the `kept` mapping of another file fits this one.

    A kept column counts where the file has it and has no column with the name of the role.
    """
    own = {folded(column) for column in columns}
    if "reference" in own:
        own.add("references")
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
            role, equals, column = (piece.strip() for piece in part.partition("="))
            if not equals or not role or not column:
                raise UsageError(f"--map takes ROLE=COLUMN, such as target=agent_answer; {part[:60]!r} came.")
            if roles.get(role, column) != column:
                raise UsageError(f"--map names two columns for {role[:60]!r}. Name one.")
            roles[role] = column
    return roles


class _Draft:
    """Roles while they are being handed out; every column plays one role at most."""

    def __init__(self, columns: tuple[str, ...], rows: Rows) -> None:
        self.columns, self.rows = columns, rows
        self.roles: dict[str, str] = {}
        self.found: dict[str, How] = {}
        self.notes: list[str] = []

    def free(self) -> list[str]:
        return [column for column in self.columns if column not in self.roles.values()]

    def give(self, role: str, columns: abc.Sequence[str]) -> None:
        """The first of `columns` plays `role`, if there is one and both are free."""
        if columns and role not in self.roles and columns[0] not in self.roles.values():
            self.roles[role] = columns[0]
            self.found[role] = "exact" if (role, columns[0]) in ((role, role), ("references", "reference")) else "alias"

    def take_aspect_and_value(self) -> None:
        """The two columns of a long file; neither where other columns hold labels (a wide file)."""
        aspect, value = (by_name(self.columns, (role, *ALIASES[role]))[:1] for role in ("aspect", "value"))
        if aspect and value and not any(c.startswith((HUMAN, ANN)) and c not in value for c in self.columns):
            self.give("aspect", aspect)
            self.give("value", value)

    def take_own_names(self) -> None:
        for column in self.columns:
            if column == "target" and self.holds_codes(column):
                continue  # texts may stand in another column
            if is_role(column) and column not in ("aspect", "value") and self.holds_ratings(column):
                self.give(column, [column])
        self.give("references", [column for column in self.columns if column == "reference"])

    def holds_ratings(self, column: str) -> bool:
        """False, with a note, for an ``ann_`` column that does not hold numbers or lists of numbers."""
        if not column.startswith(ANN):
            return True
        cell = next((row[column] for row in self.rows if row.get(column) not in (None, "", [], "[]")), None)
        if problem := _not_numbers(read_list(cell)):
            message = f"Column {column!r} is left out: it does not hold one list of ratings an item ({problem})."
            self.notes.append(message)
        return not problem

    def take_target(self) -> None:
        """The judged text: of the usual names the first that holds texts; then any other column of texts.

        A prediction, an output or an answer may be a number or a flag beside the text it is about.
        """
        if "target" in self.roles:
            return
        if texts := texts_of_pairs(self.free()):
            self.give("target", texts[:1])
            self.give("context", texts[1:])
            return
        named = by_name(self.free(), ("target", *ALIASES["target"]))
        written = [column for column in named if folded(column) in _OF_PAIRS or not self.holds_codes(column)]
        if written:
            self.give("target", written)
        elif named and (others := [column for column in self.free() if self.is_other_text(column)]):
            self.roles["target"], self.found["target"] = others[0], "content"
        elif named[:1] == ["target"]:
            self.give("target", named)
        elif named:
            self.give("target", named)
            message = f"Column {named[0]!r} is read as target but holds numbers or codes. Map target to another column"
            self.notes.append(f"{message} if that holds the judged text.")
        for column in named if "target" in self.roles else ():
            if column != self.roles["target"] and column not in written:
                self.notes.append(f"Column {column!r} is not read as target: it holds numbers or codes, and no texts.")

    def is_other_text(self, column: str) -> bool:
        """Whether a column of no usual name holds texts that could be judged."""
        usual = {name for role, aliases in ALIASES.items() if role != "target" for name in (role, *aliases)}
        name = folded(column)
        cells = self.cells(column)
        texts = [cell for cell in cells if isinstance(cell, str)]
        if name in usual or is_role(column) or set(name.split("_")) & REMARKS or self.holds_codes(column):
            return False
        return len(texts) >= 0.8 * len(cells) and sum(map(text_length, texts)) >= 3 * len(texts)

    def holds_codes(self, column: str) -> bool:
        """Whether a column holds numbers, flags (accept, reject) or ids, and no texts."""
        cells = [cell for cell in self.cells(column) if not (isinstance(cell, str) and is_blank(cell))]
        if not cells:
            return False
        if not _not_numbers(cell for cell in cells if not isinstance(cell, bool)):
            return True
        if not all(isinstance(cell, str) and len(cell) <= 40 for cell in cells):
            return False
        names = {folded(cell) or cell for cell in cells}
        few = len(names) <= min(10, len(cells) / 2) and all(text_length(cell) <= 3 for cell in cells)
        ids = all(re.fullmatch(r"\S*[\d_]\S*|.", cell.strip(), re.ASCII) for cell in cells)
        amounts = all(re.fullmatch(r"\W*\d[\d.,:]*\s*[^\W\d]{0,8}\W*", cell.strip()) for cell in cells)  # 42 ms
        return few or ids or amounts

    def cells(self, column: str) -> list[Any]:
        """What is filled in the first rows of a column."""
        return [row[column] for row in self.rows[:200] if row.get(column) not in (None, "")]

    def take_aliases(self) -> None:
        for column in self.free():
            name = folded(column)
            if name != column and is_role(name) and name not in LABEL_ROLES and self.holds_ratings(column):
                self.give(name, [column])
        free = self.free()
        for role, aliases in ALIASES.items():
            if role not in LABEL_ROLES:
                self.give(role, by_name(free, aliases))

    def take_labels(self) -> None:
        """Labels neither under ``human_`` nor in a long file: bare aspect names, or one bare label column."""
        self.give("annotator_id", by_name(self.free(), ("annotator_id", *ALIASES["annotator_id"])))
        if "value" in self.roles or any(role.startswith((HUMAN, ANN)) for role in self.roles):
            return
        free = self.free()
        known = [column for column in free if folded(column) in KNOWN_ASPECTS and self.is_numeric(column)]
        for column in known:
            alone = sum(folded(other) == folded(column) for other in known) == 1  # the check reports two spellings
            self.give(HUMAN + (folded(column) if alone else column), [column])
        if not known:
            self.give(HUMAN + "overall", by_name(free, ("value", *ALIASES["value"])))

    def is_numeric(self, column: str) -> bool:
        cells = [row[column] for row in self.rows[:50] if row.get(column) not in (None, "")]
        return bool(cells) and not _not_numbers(cells)

    def settle_target(self) -> None:
        """A file whose only text stands under a source's alias (a rated conversation) is about that text.

        One other text is what was written about the source; of several, a person has to say which one.
        """
        if "target" in self.roles or self.found.get("source") != "alias":
            return
        others = [
            c for c in self.free() if folded(c) in CHOSEN or (folded(c) not in _HEADINGS and self.is_other_text(c))
        ]
        if len(others) == 1:
            self.roles["target"], self.found["target"] = others[0], "content"
        elif not others:
            self.roles["target"], self.found["target"] = self.roles.pop("source"), self.found.pop("source")

    def settle_raters(self) -> None:
        if not any(role.startswith(ANN) for role in self.roles):
            for role in [role for role in self.roles if role.startswith(ANNOTATORS)]:
                self.notes.append(f"Column {self.roles.pop(role)!r} names raters, but there are no ann_ columns.")
                del self.found[role]


def _not_numbers(cells: abc.Iterable[Any]) -> str:
    """Why `cells` are not all numbers; "" when they are, whatever their commas mean."""
    try:
        for cell in cells:
            with suppress(AmbiguousCommaError):
                if not is_no_value(cell):
                    read_number(cell)
    except CellError as problem:
        return str(problem)
    return ""
