"""Which column plays which part: by its name, then by what it holds; shown and correctable, never guessed in silence.

Roles of a golden file: ``item_id source_id system_id source context target references split annotator_id``, for labels
``human_<aspect>`` (the gold label), ``ann_<aspect>`` or ``ann_<panel>_<aspect>`` (lists of individual ratings),
``annotators`` and ``annotators_<aspect>`` (who gave them, in the same order), ``metric_<name>``, and for long files
``aspect`` and ``value``.  A role's own name always wins over an alias.  `propose_mapping` goes by names, which is all
that the command line does; `guess_mapping` adds what columns hold, for a form that shows every guess.  Files of
verdicts have roles of their own (`core.data.reply_files`), found and corrected in the same way.
"""

from __future__ import annotations

import re
from collections import abc
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

from core.data.cells import AmbiguousCommaError, CellError, Comma, folded, is_no_value, read_id, read_list, read_number
from core.data.kinds import CONVERSATION_NAMES, DATA_NAMES, PAIRS, detect_kind, pair_in
from core.data.scale import Values
from core.errors import UsageError
from core.records import ItemKind
from core.texts import is_blank, is_unspaced, text_length, visible_name

Rows = abc.Sequence[abc.Mapping[str, Any]]
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
_OF_PAIRS = frozenset(name for pair in PAIRS for name in pair)
CHOSEN = frozenset(("chosen", "rejected"))
"""Columns of a preferred text and the other."""
_HEADINGS = frozenset("title topic subject headline category name url".split())
_REMARKS = frozenset(
    "comment comments note notes remark remarks explanation reason rationale feedback justification why".split()
)
"""Words in the names of columns in which raters say something about a text."""
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
        for name, column in sorted(self._behind(ANN).items(), key=lambda entry: (len(entry[0]), entry[0])):
            panel, aspect = "", name
            if name not in aspects:
                cuts = (match.start() for match in re.finditer("_", name))
                if cut := next((cut for cut in cuts if cut and name[cut + 1 :] in aspects), 0):
                    panel, aspect = name[:cut], name[cut + 1 :]
            aspects.add(aspect)
            raters = self.roles.get(f"{ANNOTATORS}_{name}") or (self.roles.get(ANNOTATORS) if not panel else None)
            ratings.append(RatingColumn(column, aspect, panel, raters))
        return tuple(sorted(ratings, key=lambda r: (r.aspect, r.panel)))

    @property
    def aspects(self) -> tuple[str, ...]:
        """Aspects of a wide file, in column order: those with gold labels, then those with ratings only."""
        gold, order = self.gold_columns, self.columns.index
        rated = {rating.aspect: rating.column for rating in self.rating_columns if rating.aspect not in gold}
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
        panels = [
            f"{rating.panel}_" if rating.panel else "" for rating in self.rating_columns if rating.aspect == aspect
        ]
        before = [HUMAN, f"{ANNOTATORS}_", *(start + p for p in panels for start in (ANN, f"{ANNOTATORS}_"))]
        new = {start + aspect: start + trimmed for start in before}
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
        mapping, aspects = self, []
        for name in ranks:
            aspect = next((aspect for aspect, column in self.gold_columns.items() if column == name), name)
            aspects.append(aspect.removeprefix(HUMAN).removeprefix(ANN))
            if name in self.columns and name not in mapping.roles.values() and "value" not in self.roles:
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
            "comma": self.comma,
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


# ── what a person names ──────────────────────────────────────────────────────────────────────────────────────


def mapping_of(
    columns: abc.Sequence[str], sample_rows: Rows, given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> Mapping:
    """As `propose_mapping`, with the columns that `chosen_roles` names.  UsageError for an unknown given one."""
    mapping = propose_mapping(columns, sample_rows)
    for role, column in chosen_roles(columns, given, kept).items():
        mapping = mapping.with_role(role, column)
    return replace(mapping, kind=detect_kind(sample_rows, mapping.roles))


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


# ── the proposal ─────────────────────────────────────────────────────────────────────────────────────────────

_LONG, _SHORT = 20, 80
"""Mean characters from which a cell is a text, and the most that an id or a name has."""
_SPACED = 3
"""Letters of a script with spaces that say as much as one of Chinese or Thai."""
_TOP, _MOST_VALUES, _MOST_FRACTIONS = 10, 60, 8
"""Of labels: the largest, and how many different values and fractions (.33 .5 …) means over a few people make."""
_MOST_REFUSED = 0.3
"""Share of cells that may be no number in a column of numbers."""
_COUNTS = frozenset(
    "n num number nr no count counts len length words tokens chars characters sentences year month day date time "
    "timestamp page turn turns round version seed rank position order index row line fold batch duration seconds "
    "age price std sd stdev stderr var variance min max".split()
)
_MOMENTS = frozenset("date time timestamp day created".split())
_ID_WORDS = frozenset("id ids nr no number key code uid uuid index".split())


def propose_mapping(columns: abc.Sequence[str], sample_rows: Rows) -> Mapping:
    """The mapping a file most plainly asks for: own names first, then aliases, then the shape of the labels.

    Shapes: `columns` in file order; `sample_rows` some or all rows (they settle the item kind and show which ``ann_``
    columns hold ratings).  Never raises for odd columns: what is not recognised is left in `Mapping.unused`.
    """
    draft = _Draft(tuple(columns), sample_rows, sample_rows[:200])
    draft.take_names()
    draft.take_target()
    draft.take_aliases()
    draft.settle()
    roles = dict(sorted(draft.roles.items(), key=lambda entry: entry[0].startswith(METRIC)))
    kind = detect_kind(sample_rows, roles)
    return Mapping(roles, draft.columns, draft.found, kind=kind, notes=tuple(draft.notes))


def guess_mapping(mapping: Mapping, rows: Rows) -> Mapping:
    """`mapping` with the parts that no name told, found "content"; its item kind follows.

    Long texts are targets, or sources when they repeat.  Short cells that differ in every row are ids, and small
    numbers on a common scale are labels.  Systems and raters are never guessed.
    """
    draft = _Draft(mapping.columns, rows, rows[:: max(1, len(rows) // 2_000)])
    draft.roles, draft.found = dict(mapping.roles), dict(mapping.found)
    draft.guess_texts()
    draft.guess_ids()
    draft.guess_labels()
    kind = mapping.kind if mapping.kind_given else detect_kind(rows, draft.roles)
    return replace(mapping, roles=draft.roles, found=draft.found, kind=kind)


@dataclass(frozen=True)
class _Column:
    """A column over a sample of the rows; `cells` holds what is filled."""

    name: str
    cells: tuple[Any, ...]

    @cached_property
    def texts(self) -> list[str]:
        return [cell for cell in self.cells if isinstance(cell, str)]

    @cached_property
    def mean_length(self) -> float:
        lengths = (_SPACED * len(text) if is_unspaced(text) else len(text) for text in self.texts)
        return sum(lengths) / len(self.texts) if self.texts else 0.0

    @cached_property
    def numbers(self) -> list[float] | None:
        """None unless nearly every cell is a number; the others may be what is wrong in the file."""
        return _numbers(self.cells)

    @cached_property
    def n_distinct(self) -> int:
        return len({repr(cell) for cell in self.cells})

    @property
    def share_distinct(self) -> float:
        return self.n_distinct / len(self.cells) if self.cells else 0.0

    @property
    def words(self) -> set[str]:
        return set(folded(self.name).split("_"))

    @property
    def is_text(self) -> bool:
        """Whether people wrote it to be read."""
        return (
            len(self.texts) >= 0.8 * max(len(self.cells), 1)
            and self.mean_length >= _LONG
            and sum(" " in text.strip() or is_unspaced(text) for text in self.texts) >= 0.5 * len(self.texts)
            and not any(text.lstrip()[:1] == "[" and _numbers(read_list(text)) for text in self.texts[:5])
        )

    @property
    def is_named(self) -> bool:
        """Whether it holds ids or names: short, of letters at least in part, or of numbers called an id."""
        if not self.cells or any(isinstance(cell, (list, dict)) or "\n" in str(cell) for cell in self.cells):
            return False
        if any(len(read_id(cell)) > _SHORT for cell in self.cells):
            return False
        if self.numbers is not None:
            return bool(self.words & _ID_WORDS) and all(number.is_integer() for number in self.numbers)
        return True

    @property
    def is_rated(self) -> bool:
        """Whether it holds numbers as people give them on a scale, or means of a few such numbers."""
        if self.words & (_COUNTS | _ID_WORDS) or self.numbers is None or len(self.cells) < 2:
            return False
        if any(map(MODELS.fullmatch, self.words)):
            return False
        values = {round(number, 3) for number in self.numbers}
        fractions = {round(value % 1, 2) for value in values}
        within = min(values) >= -_TOP and max(values) <= _TOP
        return within and 2 <= len(values) <= _MOST_VALUES and len(fractions) <= _MOST_FRACTIONS

    @property
    def is_rated_by_several(self) -> bool:
        """Whether it holds lists of such numbers, one of each rater."""
        lists = [read_list(cell) for cell in self.cells if isinstance(cell, list) or str(cell).lstrip()[:1] == "["]
        if len(lists) < 0.8 * max(len(self.cells), 1) or not any(len(ratings) > 1 for ratings in lists):
            return False
        return _Column(self.name, tuple(number for ratings in lists for number in ratings)).is_rated

    @property
    def is_codes(self) -> bool:
        """Whether it holds numbers, flags (accept, reject) or ids, and no texts."""
        cells = [cell for cell in self.cells if not (isinstance(cell, str) and is_blank(cell))]
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

    @property
    def is_other_text(self) -> bool:
        """Whether a column of no usual name holds texts that could be judged."""
        usual = {name for role, aliases in ALIASES.items() if role != "target" for name in (role, *aliases)}
        if folded(self.name) in usual or is_role(self.name) or self.words & _REMARKS or self.is_codes:
            return False
        long = sum(map(text_length, self.texts)) >= 3 * len(self.texts)
        return long and len(self.texts) >= 0.8 * len(self.cells)


class _Draft:
    """Roles while they are being handed out; every column plays one role at most."""

    def __init__(self, columns: tuple[str, ...], rows: Rows, sample: Rows) -> None:
        self.columns, self.rows, self.sample = columns, rows, sample
        self.roles: dict[str, str] = {}
        self.found: dict[str, How] = {}
        self.notes: list[str] = []
        self._columns: dict[str, _Column] = {}

    def column(self, name: str) -> _Column:
        if name not in self._columns:
            cells = (row[name] for row in self.sample if row.get(name) not in (None, "", [], {}))
            self._columns[name] = _Column(name, tuple(cells))
        return self._columns[name]

    def free(self) -> list[str]:
        return [column for column in self.columns if column not in self.roles.values()]

    def filled(self) -> list[_Column]:
        return [column for name in self.free() if (column := self.column(name)).cells]

    def give(self, role: str, columns: abc.Sequence[str], how: How | None = None) -> None:
        """The first of `columns` plays `role`, if there is one and both are free."""
        if columns and role not in self.roles and columns[0] not in self.roles.values():
            exact = role == columns[0] or (role, columns[0]) == ("references", "reference")
            self.roles[role], self.found[role] = columns[0], how or ("exact" if exact else "alias")

    # by name

    def take_names(self) -> None:
        """The two columns of a long file, then own names.

        No long file where other columns hold labels.  A ``target`` of codes waits: texts may stand in another column.
        """
        aspect, value = first_named(self.columns, "aspect"), first_named(self.columns, "value")
        if aspect and value and not any(c.startswith((HUMAN, ANN)) and c not in value for c in self.columns):
            self.give("aspect", aspect)
            self.give("value", value)
        for name in self.columns:
            waits = name in ("aspect", "value") or (name == "target" and self.column(name).is_codes)
            if is_role(name) and not waits and self.holds_ratings(name):
                self.give(name, [name])
        self.give("references", [name for name in self.columns if name == "reference"])

    def holds_ratings(self, column: str) -> bool:
        """False, with a note, for an ``ann_`` column that does not hold numbers or lists of numbers."""
        if not column.startswith(ANN):
            return True
        cell = next((row[column] for row in self.rows if row.get(column) not in (None, "", [], "[]")), None)
        if problem := _not_numbers(read_list(cell)):
            message = f"Column {column!r} is left out: it does not hold one list of ratings per item ({problem})."
            self.notes.append(message)
        return not problem

    def take_target(self) -> None:
        """The judged text: of the usual names the first that holds texts; then any other column of texts.

        A prediction, an output or an answer may be a number or a flag next to the text it is about.
        """
        if "target" in self.roles:
            return
        if pair := pair_in(self.free()):
            self.give("target", pair[0][:1])
            self.give("context", pair[0][1:])
            return
        named = by_name(self.free(), ("target", *ALIASES["target"]))
        written = [name for name in named if folded(name) in _OF_PAIRS or not self.column(name).is_codes]
        self.give("target", written)
        if named and not written:
            self.give("target", [name for name in self.free() if self.column(name).is_other_text], "content")
        if named and "target" not in self.roles:
            self.give("target", named)
            if named[0] != "target":
                message = f"Column {named[0]!r} is read as target but holds numbers or codes."
                self.notes.append(f"{message} Map target to another column if that holds the judged text.")
        for name in named:
            if name != self.roles["target"] and name not in written:
                self.notes.append(f"Column {name!r} is not read as target: it holds numbers or codes, and no texts.")

    def take_aliases(self) -> None:
        """Other spellings of own names, usual other names, then labels: bare aspect names or one bare label column."""
        for column in self.free():
            name = folded(column)
            if name != column and is_role(name) and name not in LABEL_ROLES and self.holds_ratings(column):
                self.give(name, [column])
        free = self.free()
        for role, aliases in ALIASES.items():
            if role not in LABEL_ROLES:
                self.give(role, by_name(free, aliases))
        self.give("annotator_id", first_named(self.free(), "annotator_id"))
        if "value" in self.roles or any(role.startswith((HUMAN, ANN)) for role in self.roles):
            return
        free = self.free()
        known = [
            name
            for name in free
            if folded(name) in KNOWN_ASPECTS
            and (cells := self.column(name).cells[:50])
            and not _not_numbers(cells)
        ]  # fmt: skip
        for name in known:
            alone = sum(folded(other) == folded(name) for other in known) == 1  # the check reports two spellings
            self.give(HUMAN + (folded(name) if alone else name), [name])
        if not known:
            self.give(HUMAN + "overall", first_named(free, "value"))

    def settle(self) -> None:
        """Settle what the target is where only a source was named, and drop names of raters without ratings.

        A file whose only text stands under a source's alias (a rated conversation) is about that text.  One other text
        is what was written about the source; of several, a person has to say which one.
        """
        if "target" not in self.roles and self.found.get("source") == "alias":
            others = [
                name
                for name in self.free()
                if folded(name) in CHOSEN or (folded(name) not in _HEADINGS and self.column(name).is_other_text)
            ]
            if len(others) == 1:
                self.give("target", others, "content")
            elif not others:
                self.roles["target"], self.found["target"] = self.roles.pop("source"), self.found.pop("source")
        if not any(role.startswith(ANN) for role in self.roles):
            for role in [role for role in self.roles if role.startswith(ANNOTATORS)]:
                self.notes.append(f"Column {self.roles.pop(role)!r} names raters, but there are no ann_ columns.")
                del self.found[role]

    # by content

    def guess_texts(self) -> None:
        """Target and source: of two texts the one that repeats, or is much longer, is the source."""
        texts = [column for column in self.filled() if column.is_text or (len(self.columns) == 1 and column.texts)]
        texts = [column for column in texts if not column.words & (_REMARKS | CHOSEN)]
        target = self.roles.get("target")
        if target is not None and "source" not in self.roles and texts and folded(target) in ALIASES["source"]:
            del self.roles["target"], self.found["target"]  # the only text with a usual name was one of a source
            self.roles["source"], self.found["source"] = target, "alias"
        if "target" not in self.roles and texts:
            fresh = max(texts, key=lambda column: (column.share_distinct > 0.9, column.share_distinct))
            alike = [column for column in texts if column.share_distinct > 0.9]
            if len(alike) > 1 and "source" not in self.roles:
                first, second = alike[:2]
                fresh = first if first.mean_length * 1.5 < second.mean_length else second
                self.give("source", [(first if fresh is second else second).name], "content")
            self.give("target", [fresh.name], "content")
        for column in texts:
            if column.share_distinct <= 0.7:
                self.give("source", [column.name], "content")

    def guess_ids(self) -> None:
        """Ids of items, which differ in every row, and of sources: a column called an id whose cells repeat."""
        for column in self.filled():
            if not column.is_named or column.words & _MOMENTS:
                continue
            if "item_id" not in self.roles and self.names_every_row(column):
                self.give("item_id", [column.name], "content")
            elif column.words & _ID_WORDS and 2 <= column.n_distinct <= 0.7 * len(column.cells):
                self.give("source_id", [column.name], "content")

    def guess_labels(self) -> None:
        """Only where no column says of itself that it holds labels."""
        if {"aspect", "value"} <= self.roles.keys():
            return
        if any(self.found.get(role) == "exact" for role in self.roles if role.startswith((HUMAN, ANN))):
            return
        for column in self.filled():
            if prefix := HUMAN if column.is_rated else ANN if column.is_rated_by_several else "":
                self.give(prefix + plain_name(column.name), [column.name], "content")

    def names_every_row(self, column: _Column) -> bool:
        cells = [row.get(column.name) for row in self.rows]
        different = {read_id(cell) for cell in cells} - {""}
        # An id that stands twice is a fault to report, which needs the column to count as ids.
        coded = len(cells) >= 6 and all(re.search(r"\d", name) and " " not in name for name in different)
        return len(different) >= len(cells) - max(1, len(cells) // 20) * (coded or len(cells) >= 20)


def _numbers(cells: abc.Sequence[Any]) -> list[float] | None:
    """The numbers in `cells`; None where too many are none."""
    numbers: list[float] = []
    n_refused = 0
    for cell in cells:
        try:
            number = read_number(cell)
        except AmbiguousCommaError:
            continue
        except CellError:
            n_refused += 1
            continue
        if number is not None:
            numbers.append(number)
    return numbers if numbers and n_refused <= _MOST_REFUSED * len(cells) else None


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
