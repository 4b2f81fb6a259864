"""Map the columns of a file to roles, by name or as the user chose.

Roles of a golden file:

======================================  ===============================================================
``item_id``, ``source_id``,             ids of the item, its source, and the system that wrote the text
``system_id``
``source``, ``context``, ``target``,    texts; the target is the text to judge
``references``
``split``                               the set that the item belongs to
``human_<aspect>``                      the gold label
``ann_<aspect>``,                       lists of individual ratings
``ann_<panel>_<aspect>``
``annotators``,                         the raters, in the order of the ratings
``annotators_<aspect>``
``annotator_id``                        the rater of a row, in a file with one row per rating
``reason``, ``reason_<aspect>``         a text, or a list with a reason for each rating
``metric_<name>``                       scores by a metric
``aspect``, ``value``                   the aspect and the label, in a file with one row per label
======================================  ===============================================================

`core.data.judge_results` has the roles of files with results of other judges.

Users define the meaning of values in texts of these forms::

    missing=99          99 is not a label; also 99,-1, or quality:99 for one aspect
    missing=none        every number is a label
    best=low            the lowest label is the best; best=quality:low for one aspect
    best=high           the highest label is the best
    aspect=OLD:NEW      the aspect that a long file calls OLD is called NEW
    ids=number          a row that repeats an id is a separate item, named "ID (row 54)"
    ids=first           a row that repeats an id is left out
"""

from __future__ import annotations

import itertools
import re
from collections import abc
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

from core.data.cells import folded, read_list, read_numbers, read_turns, unpacked
from core.errors import UsageError
from core.records import ItemKind, is_blank, text_length, visible_name

Rows = abc.Sequence[abc.Mapping[str, Any]]
Layout = Literal["wide", "long"]
How = Literal["exact", "alias", "corrected"]
"""How the column of a role was found: by its own name, by an alias, or chosen by the user."""

HUMAN, ANN, METRIC, ANNOTATORS, REASON = "human_", "ann_", "metric_", "annotators", "reason"
LABEL_ROLES = ("aspect", "value", "annotator_id")
PLAIN_ROLES: tuple[str, ...] = (
    *("item_id", "source_id", "system_id", "source", "context", "target", "references", "split"),
    *("annotator_id", "aspect", "value", ANNOTATORS, REASON),
)
LONGEST_ASPECT = 100
"""Maximum length of an aspect's name, because all criteria, charts and reports repeat it."""
_NO_NAME = "human avg mean average median gold annotated rating ratings score scores label labels value likert".split()
_AROUND = re.compile(rf"^(?:{'|'.join(_NO_NAME)})_|_(?:{'|'.join(_NO_NAME)}|\d+_\d+)$")

CONVERSATION_NAMES = frozenset(
    "dialogue dialog conversation messages history dialogue_history dialog_history chat chat_history turns".split()
)
DATA_NAMES = frozenset(
    "mr meaning_representation data triples tripleset triple_set table structured_data record".split()
)
"""Columns whose names alone mean a conversation or structured data."""

TEXTS_OF_PAIRS = "text response answer output completion summary candidate generation reply target message".split()
"""Words in column names of two texts to choose between."""
Sides = tuple[str, str]
SIDES: tuple[Sides, ...] = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"))
_FORMS = ("{text}_{side}", "{side}_{text}", *(f"{who}_{{side}}_{{text}}" for who in ("model", "system", "assistant")))

ALIASES: abc.Mapping[str, tuple[str, ...]] = {
    "item_id": tuple("id uid example_id sample_id instance_id row_id ticket ticket_id idx index index_level_0".split()),
    "source_id": tuple(
        "doc_id document_id article_id group group_id dialogue_id dialog_id conversation_id prompt_id "
        "question_id".split()
    ),
    "system_id": tuple("system system_name model model_id model_name generator bot".split()),
    "target": tuple(
        "summary response output hypothesis prediction candidate generation completion answer reply generated_text "
        "system_output model_output model_response model_answer llm_output llm_response agent_answer agent_reply "
        "bot_answer bot_reply decoded simplification translation text sentence essay review".split()
    ),
    "source": (
        *"document article source_text src input input_text prompt question instruction original passage".split(),
        *"user_question customer_question".split(),
        *sorted(CONVERSATION_NAMES),
        *sorted(DATA_NAMES),
    ),
    "context": tuple("fact facts knowledge persona background evidence grounding".split()),
    "references": tuple("reference refs ref reference_summary gold_summary reference_text gold_text".split()),
    "split": ("fold", "subset", "partition"),
    "annotator_id": tuple("annotator rater rater_id worker worker_id coder labeler labeller user_id".split()),
    "aspect": tuple("dimension criterion quality_dimension attribute".split()),
    "value": tuple("label score rating human_score human_rating human_label".split()),
    REASON: tuple("reasons comment comments rationale explanation feedback justification".split()),
}
KNOWN_ASPECTS = frozenset(
    "coherence consistency fluency relevance overall quality naturalness informativeness engagingness groundedness "
    "understandability grammar semantics adequacy faithfulness factuality simplicity meaning helpfulness correctness "
    "accuracy clarity conciseness completeness specificity interestingness".split()
)
MODELS = re.compile(
    "(gpt|chatgpt|claude|llama|gemini|mistral|mixtral|qwen|deepseek|palm|openai|llm|ai|auto|automatic|machine|rouge|bleu|"
    "meteor|bert|bart|bertscore|geval)[a-z]*[0-9]*"
)
"""Names of models and metrics, which are not human raters."""


# ── meanings of values ───────────────────────────────────────────────────────────────────────────────────────

Best = Literal["low", "high"]

_ANSWERS = "missing=99, missing=none, best=low, best=high, ids=number, ids=first, aspect=OLD:NEW"


@dataclass(frozen=True)
class Values:
    """Meanings of values as the user defined them; None or empty if not defined.

    Attributes:
        missing: Pairs (aspect, number that is not a label); "" means all aspects. The number None means that all other
            numbers are labels.
        best: Pairs (aspect, best end of its scale: "low" or "high"); "" means all aspects.
        ids: How to treat rows that repeat an id: "number" keeps them as separate items, "first" leaves them out.
        names: Pairs (name of an aspect in a long file, its new name in Concord).
    """

    missing: tuple[tuple[str, float | None], ...] = ()
    best: tuple[tuple[str, Best], ...] = ()
    ids: Literal["number", "first"] | None = None
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, answers: Values | str | abc.Sequence[str] | None) -> Values:
        """Parse the user's definitions of values, in the forms that the module docstring lists.

        Returns empty `Values` if `answers` is None. Raises UsageError for any other form.
        """
        from pydantic import TypeAdapter, ValidationError

        if isinstance(answers, Values):
            return answers
        said: dict[str, Any] = {"missing": [], "best": [], "aspect": []}
        for answer in (answers,) if isinstance(answers, str) else answers or ():
            name, _, given = (part.strip() for part in answer.partition("="))
            if name in said:
                parts = (part.rpartition(":") for part in given.split(","))
                said[name] += [(aspect.strip().removeprefix("human_"), word.strip()) for aspect, _, word in parts]
            else:
                said[name] = given
        said["missing"] = [(aspect, None if word == "none" else word) for aspect, word in said["missing"]]
        said["names"] = said.pop("aspect")
        try:
            if said.keys() - {"ids"} != {"missing", "best", "names"} or not all(map(all, said["names"])):
                raise ValueError
            return TypeAdapter(cls).validate_python(said)
        except (ValidationError, ValueError):
            listed = [answers] if isinstance(answers, str) else list(answers or ())
            message = f"Concord can't use {', '.join(listed)[:100]!r} to read label values. Use one of: {_ANSWERS}."
            raise UsageError(message) from None

    def is_missing(self, value: float | None, aspect: str) -> bool:
        """Return whether the user declared that `value` is not a label of `aspect`.

        If `value` is None, return whether the user declared that all numbers are labels, except those listed as
        missing.
        """
        return ("", value) in self.missing or (aspect, value) in self.missing

    def best_of(self, aspect: str) -> Best | None:
        """Return which end of the scale of `aspect` is best, "low" or "high"; None if the user didn't define it.

        A definition for the aspect takes precedence over one for all aspects.
        """
        said = dict(self.best)
        return said.get(aspect, said.get(""))


# ── roles ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ColumnRoles:
    """Roles of the columns of a file, how each role was found, and all `columns` in file order."""

    roles: abc.Mapping[str, str]
    columns: tuple[str, ...]
    found: abc.Mapping[str, How] = field(default_factory=dict)

    @property
    def unused(self) -> tuple[str, ...]:
        used = set(self.roles.values())
        return tuple(column for column in self.columns if column not in used)

    def found_by(self, how: How) -> tuple[str, ...]:
        """List the roles whose column was found by `how`, such as "exact" (its own name) or "alias"."""
        return tuple(role for role, way in self.found.items() if way == how and role in self.roles)

    def with_role(self, role: str, column: str | None) -> Self:
        """Assign `role` to `column`, which loses its previous role. If `column` is None, no column gets the role.

        Raises UsageError for an unknown role or column.
        """
        self.check_role(role)
        if column is not None and column not in self.columns:
            raise UsageError(
                f"The file has no column {column[:60]!r}. Its columns are: {', '.join(self.columns)[:400]}."
            )
        if column is not None and self.roles.get(role) == column:
            return self
        roles = {r: c for r, c in self.roles.items() if r != role and c != column}
        found = {r: how for r, how in self.found.items() if r in roles}
        if column is not None:
            roles[role], found[role] = column, "corrected"
        return replace(self, roles=roles, found=found)

    def check_role(self, role: str) -> None:
        """Raise UsageError if `role` is not a role in this kind of file."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mapping(ColumnRoles):
    """Roles of the columns of a golden file.

    Attributes:
        kind: Kind of the items.
        kind_given: Whether the user set `kind`; otherwise it was detected from the texts.
        values: Meanings of values that the user defined.
        notes: Messages for the user, such as why a column is ignored.
        unused: Columns without a role.
        layout: "wide" (one row per item) or "long" (one row per rating).
    """

    kind: ItemKind = "source_target"
    kind_given: bool = False
    values: Values = field(default_factory=Values)
    notes: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        by_rater = "annotator_id" in self.roles and any(role.startswith(HUMAN) for role in self.roles)
        return "long" if by_rater or {"aspect", "value"} <= self.roles.keys() else "wide"

    @property
    def gold_columns(self) -> dict[str, str]:
        """Map each aspect to the column of its gold labels (wide layout)."""
        return self._behind(HUMAN)

    @property
    def metric_columns(self) -> dict[str, str]:
        """Map each metric to its column."""
        return self._behind(METRIC)

    def _behind(self, prefix: str) -> dict[str, str]:
        return {role.removeprefix(prefix): column for role, column in self.roles.items() if role.startswith(prefix)}

    @property
    def rating_columns(self) -> list[tuple[str, str, str, str | None]]:
        """List the columns of individual ratings as (column, aspect, panel or "", column of raters or None).

        ``ann_expert_x`` belongs to panel "expert" of aspect "x" if that aspect exists.
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
        """Aspects of a wide file, in column order: first aspects with gold labels, then aspects with ratings only."""
        gold, order = self.gold_columns, self.columns.index
        rated = {aspect: column for column, aspect, _, _ in self.rating_columns if aspect not in gold}
        return (*sorted(gold, key=lambda a: order(gold[a])), *sorted(rated, key=lambda a: order(rated[a])))

    def reason_columns(self, aspect: str) -> list[str]:
        """List the columns with reasons for an aspect: its own column, and the column for all aspects."""
        return [self.roles[role] for role in (f"{REASON}_{aspect}", REASON) if role in self.roles]

    def check_role(self, role: str) -> None:
        """Raise UsageError if `role` is not a role in a golden file."""
        if not is_role(role):
            raise UsageError(
                f"{role!r} isn't a role. Use one of: {', '.join(PLAIN_ROLES)}, human_<aspect>, ann_<aspect>, "
                "reason_<aspect>, metric_<name>."
            )

    def renamed(self, aspect: str, name: str, among: abc.Collection[str] = ()) -> Mapping:
        """Return a copy in which `aspect`, with its ratings and raters, is called `name`.

        `among` lists all aspects of a long file, in which a column contains the names of aspects. Leave `among` empty
        for a wide file. Raises UsageError if the name is empty, longer than 100 characters, or already taken.
        """
        trimmed = " ".join(visible_name(name).split())
        if trimmed == aspect:
            return self
        if not 1 <= len(trimmed) <= LONGEST_ASPECT:
            came = f"this name has {len(trimmed)}" if trimmed else "this name is empty"
            raise UsageError(f"An aspect's name must have 1 to {LONGEST_ASPECT} characters; {came}.")
        taken = (*self.aspects, *among, *(new for _, new in self.values.names))
        if trimmed in taken and (trimmed in self.gold_columns or aspect not in self.gold_columns):
            raise UsageError(f"The aspect {trimmed!r} already exists. Choose another name for {aspect[:100]!r}.")
        if aspect in among:
            names = (*self.values.names, (aspect, trimmed))
            return replace(self, values=replace(self.values, names=names))
        own = {column for column, of, _, _ in self.rating_columns if of == aspect} | {self.gold_columns.get(aspect)}
        own |= {raters for _, of, _, raters in self.rating_columns if of == aspect}
        own.add(self.roles.get(f"{REASON}_{aspect}"))
        new = {
            role: role.removesuffix(aspect) + trimmed
            for role, column in self.roles.items()
            if column in own and role not in PLAIN_ROLES
        }
        roles = {new.get(role, role): column for role, column in self.roles.items()}
        return replace(self, roles=roles, found={new.get(role, role): how for role, how in self.found.items()})

    def with_plain_names(self) -> Mapping:
        """Rename every aspect to its `plain_name`, unless that name is taken."""
        mapping = self
        for aspect in self.aspects:
            with suppress(UsageError):
                mapping = mapping.renamed(aspect, plain_name(aspect))
        return mapping

    def with_kind(self, kind: ItemKind) -> Mapping:
        """Return a copy with the kind of items that the user chose."""
        return replace(self, kind=kind, kind_given=True)

    def as_json(self) -> dict[str, Any]:
        """Return the roles and how they were found, for ``check --json`` and the mapping form."""
        return {
            "roles": dict(self.roles),
            "exact": list(self.found_by("exact")),
            "aliased": list(self.found_by("alias")),
            "corrected": list(self.found_by("corrected")),
            "unused": list(self.unused),
            "layout": self.layout,
            "kind": self.kind,
            "values": asdict(self.values),
            "notes": list(self.notes),
        }


def is_role(name: str) -> bool:
    prefixes = (HUMAN, ANN, METRIC, f"{ANNOTATORS}_", f"{REASON}_")
    return name in PLAIN_ROLES or any(name.startswith(prefix) and name != prefix for prefix in prefixes)


def plain_name(column: str) -> str:
    """Return the aspect that a label column names: "coherence" for ``"coherence_avg"`` and ``"Coherence (1-5)"``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column)
    name = re.sub(r"[\W_]+", "_", spaced.lower()).strip("_") or column
    while (shorter := _AROUND.sub("", name)) not in (name, ""):
        name = shorter
    return name


def by_name(
    columns: abc.Iterable[str], names: abc.Iterable[str], normalise: abc.Callable[[str], str] = folded
) -> list[str]:
    """Return the columns whose name, after `normalise`, is one of `names`, in the order of `names`."""
    alike: dict[str, list[str]] = {}
    for column in columns:
        alike.setdefault(normalise(column), []).append(column)
    return [column for name in names for column in alike.get(name, ())]


def first_named(columns: abc.Iterable[str], role: str) -> list[str]:
    """Return a list with one column for `role`, found by the role's name or else by an alias; [] if there is none."""
    return by_name(columns, (role, *ALIASES[role]))[:1]


def side_key(name: str) -> str:
    """Normalise a name, and separate digits at the end: ``"Answer1"`` → ``"answer_1"``."""
    return re.sub(r"(?<=[a-z])(?=[0-9]+$)", "_", folded(name))


def pair_in(columns: abc.Iterable[str]) -> tuple[tuple[str, str], Sides] | None:
    """Return the two columns of a pair of texts, and the endings of their names, such as ("a", "b").

    Returns None if the columns don't contain such a pair.
    """
    named = {side_key(column): column for column in reversed(list(columns))}
    for sides, form, text in itertools.product(SIDES, _FORMS, TEXTS_OF_PAIRS):
        first, second, third = (form.format(side=side, text=text) for side in (*sides, "2"))
        if first in named and second in named and (sides != ("0", "1") or third not in named):
            return (named[first], named[second]), sides
    return None


# ── roles that the user chose ────────────────────────────────────────────────────────────────────────────────


def chosen_roles(
    columns: abc.Collection[str], given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> dict[str, str]:
    """Merge the roles that the user has `given` with roles `kept` from the mapping of an earlier file.

    A kept role applies on three conditions: the file has its column, no column is named after the role, and the user
    gave the column no other role.
    """
    own = {folded(column) for column in columns}
    own |= {"references"} if "reference" in own else set()
    fitting = {
        role: column
        for role, column in kept.items()
        if is_role(role) and column in columns and role not in own and column not in given.values()
    }
    return fitting | dict(given)


KEPT_VALUES = "values"
"""The key of the meanings of values in `GoldenSet.columns`; no role has this name."""


def kept_values(kept: abc.Mapping[str, str]) -> Values:
    """Read the meanings of values from `kept`, the mapping of an earlier file; empty if it defines none.

    Raises UsageError if they cannot be read.
    """
    if KEPT_VALUES not in kept:
        return Values()
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Values).validate_json(kept[KEPT_VALUES])
    except ValidationError:
        raise UsageError("The judge file's settings for label values can't be read. Export the judge again.") from None


def values_to_keep(values: Values) -> dict[str, str]:
    """Return the user's definitions of values in the form that `kept_values` reads; {} if there are none."""
    from pydantic import TypeAdapter

    given = TypeAdapter(Values).dump_json(values, exclude_defaults=True).decode()
    return {} if given == "{}" else {KEPT_VALUES: given}


def read_map(given: abc.Mapping[str, str] | str | abc.Sequence[str] | None) -> dict[str, str]:
    """Parse ``"target=agent_answer,source=question"``, or several such texts; return a dict from role to column.

    A comma is part of a column's name unless ROLE= follows it. Raises UsageError for any other form.
    """
    if given is None or isinstance(given, abc.Mapping):
        return dict(given or {})
    roles: dict[str, str] = {}
    for text in (given,) if isinstance(given, str) else given:
        for part in re.split(r",(?=\s*[^\s=,]+\s*=)", text):
            role, _, column = (piece.strip() for piece in part.partition("="))
            if not role or not column:
                raise UsageError(f"--map expects ROLE=COLUMN, such as target=agent_answer; got {part[:60]!r}.")
            if roles.setdefault(role, column) != column:
                raise UsageError(f"--map names two columns for {role[:60]!r}. Name only one column for each role.")
    return roles


# ── proposed roles ───────────────────────────────────────────────────────────────────────────────────────────

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_NO_TEXTS_JUDGED = frozenset(
    "title topic subject headline category name url comment comments note notes remark remarks explanation reason "
    "rationale feedback justification why".split()
)
"""Names of columns with texts about a text: its heading, and comments of raters."""


def propose_mapping(columns: abc.Sequence[str], rows: Rows) -> Mapping:
    """Propose a role for each column, from its name and the `rows`.

    `rows` are some or all rows of the file. Concord's own names come first, then known aliases, then columns that look
    like labels. Unrecognised columns cause no error; `Mapping.unused` lists them.
    """
    roles: dict[str, str] = {}
    found: dict[str, How] = {}
    notes: list[str] = []

    def free() -> list[str]:
        return [column for column in columns if column not in roles.values()]

    def give(role: str, named: abc.Sequence[str]) -> None:
        """Assign `role` to the first column in `named`, unless the role or that column is already taken."""
        if named and role not in roles and named[0] not in roles.values():
            exact = role == named[0] or (role, named[0]) == ("references", "reference")
            roles[role], found[role] = named[0], "exact" if exact else "alias"

    def holds_ratings(column: str) -> bool:
        """Return False and add a note if an ``ann_`` column contains no numbers; return True for any other column."""
        filled = (row[column] for row in rows if row.get(column) not in (None, "", [], "[]"))
        _, refused = read_numbers(read_list(next(filled, None)) if column.startswith(ANN) else ())
        if refused:
            notes.append(f"Column {column!r} is ignored because it doesn't contain lists of ratings ({refused[0]}).")
        return not refused

    # first the two columns of a long file, if no other column has labels; then own names
    aspect, value = first_named(columns, "aspect"), first_named(columns, "value")
    if aspect and value and not any(name.startswith((HUMAN, ANN)) and name not in value for name in columns):
        give("aspect", aspect)
        give("value", value)
    for name in columns:
        if is_role(name) and name not in ("aspect", "value", "target") and holds_ratings(name):
            give(name, [name])
    give("references", [name for name in columns if name == "reference"])
    if (pair := pair_in(free())) and "target" not in columns:
        give("target", pair[0][:1])
        give("context", pair[0][1:])
    # a column called prediction, output or answer can hold a number or a flag about the text
    named = by_name(free(), ("target", *ALIASES["target"]))
    for name in named if "target" not in roles else ():
        if holds_texts(rows, name) or named == ["target"]:  # named on purpose
            give("target", [name])
            break
        notes.append(f"Column {name!r} isn't used as the target because it contains numbers or codes, not text.")
    for column in free():
        name = folded(column)
        if name != column and name not in ("target", *LABEL_ROLES) and is_role(name) and holds_ratings(column):
            give(name, [column])
    for role in ALIASES:
        if role not in ("target", REASON, *LABEL_ROLES):
            give(role, by_name(free(), ALIASES[role]))
    give("annotator_id", first_named(free(), "annotator_id"))
    if "value" not in roles and not any(role.startswith((HUMAN, ANN)) for role in roles):  # bare names of aspects
        known = [name for name in free() if folded(name) in KNOWN_ASPECTS]
        known = [name for name in known if (got := read_numbers(row.get(name) for row in rows[:50]))[0] and not got[1]]
        for name in known:
            give(HUMAN + folded(name), [name])
        if not known:
            give(HUMAN + "overall", first_named(free(), "value"))
    if "target" not in roles and found.get("source") == "alias":
        others = (name for name in free() if folded(name) not in _NO_TEXTS_JUDGED and name not in named)
        if not any(holds_texts(rows, name, 3) for name in others):  # a rated conversation, say
            roles["target"], found["target"] = roles.pop("source"), found.pop("source")
    if not any(role.startswith(ANN) for role in roles):  # names of raters need ratings
        roles = {role: column for role, column in roles.items() if not role.startswith(ANNOTATORS)}
        found = {role: how for role, how in found.items() if role in roles}
    # reasons for labels, on one aspect or on all; a thumb or a number is not a reason
    said = (REASON, *ALIASES[REASON])
    rated = {folded(role.partition("_")[2]): role.partition("_")[2] for role in roles if role.startswith((HUMAN, ANN))}
    roles_of = {f"{word}_{key}": f"{REASON}_{aspect}" for key, aspect in rated.items() for word in said}
    roles_of |= {f"{key}_{word}": f"{REASON}_{aspect}" for key, aspect in rated.items() for word in said}
    roles_of |= dict.fromkeys(said, REASON)
    for name in [name for name in free() if folded(name) in roles_of]:
        entries = [entry for row in rows[:200] for entry in read_list(row.get(name)) if str(entry or "").strip()]
        if 2 * len(read_numbers(entries)[1]) > len(entries):
            give(roles_of[folded(name)], [name])
    roles = dict(sorted(roles.items(), key=lambda entry: entry[0].startswith(METRIC)))
    return Mapping(roles, tuple(columns), found, detect_kind(rows, roles), notes=tuple(notes))


def mapping_of(
    columns: abc.Sequence[str], rows: Rows, given: abc.Mapping[str, str], kept: abc.Mapping[str, str]
) -> Mapping:
    """Propose a mapping, and assign the roles from `chosen_roles`.

    Raises UsageError if the user chose an unknown role or column.
    """
    mapping = propose_mapping(columns, rows)
    for role, column in chosen_roles(columns, given, kept).items():
        mapping = mapping.with_role(role, column)
    return replace(mapping, kind=detect_kind(rows, mapping.roles))


def holds_texts(rows: Rows, column: str, n_words: int = 1) -> bool:
    """Return whether a column contains texts of at least `n_words` words on average.

    Numbers, flags and lists are not texts.

    Only the first 200 cells are read.
    """
    cells = [cell for row in rows[:200] if (cell := row.get(column)) not in _EMPTY]
    texts = [cell for cell in cells if isinstance(cell, str) and not is_blank(cell)]
    if n_words == 1 and not texts:
        return all(isinstance(cell, (str, list, dict)) for cell in cells)  # messages, objects, or nothing at all
    if not read_numbers(texts)[1] or len(texts) < 0.8 * len(cells):
        return False
    flags = len({folded(text) or text for text in texts}) <= min(10, len(texts) / 2)
    lengths = [text_length(text) for text in texts]
    return sum(lengths) >= n_words * len(texts) and not (flags and max(lengths) <= 3)


# ── kind of the items ────────────────────────────────────────────────────────────────────────────────────────

_ACT = re.compile(r"\s*\??[A-Za-z_][\w-]*\s*\((?P<slots>.*)\)\s*", re.DOTALL)
_TURN = re.compile(
    r"\s*(user|assistant|human|ai|bot|system|agent|customer|(speaker|person|participant)[ _]?\w{1,2}|[ab]|p\d)\s*:",
    re.I,
)


def detect_kind(rows: Rows, roles: abc.Mapping[str, str]) -> ItemKind:
    """Detect the kind of the items from the mapped roles and the first 50 filled rows.

    The first rule that applies decides:

    1. ``pair``: there are columns for text A and text B.
    2. ``source_context_target``: there is a context, such as a dialogue with a fact.
    3. ``conversation``: the source (or else the target) has messages or turns, or its column is called dialogue,
       messages, ….
    4. ``single``: there is no source.
    5. ``data_text``: the source is structured (objects, ``act(slot=value)``, ``a | b | c`` triples), or its column is
       called mr, data, ….
    6. ``source_target``: anything else.
    """
    texts = roles.get("target", ""), roles.get("context", "")
    if (pair := pair_in(texts)) and pair[0] == texts:
        return "pair"

    def mostly(test: abc.Callable[[Any], bool], role: str) -> bool:
        filled = (row[roles[role]] for row in rows if row.get(roles[role]) not in _EMPTY)
        values = [unpacked(cell) for cell in itertools.islice(filled, 50)]
        return bool(values) and sum(map(test, values)) >= 0.8 * len(values)

    if "context" in roles and mostly(lambda _: True, "context"):
        return "source_context_target"
    role = "source" if "source" in roles and mostly(lambda _: True, "source") else "target"
    name = folded(roles.get(role, ""))
    if name in CONVERSATION_NAMES or (role in roles and mostly(_is_spoken, role)):
        return "conversation"
    if role == "target":
        return "single"
    return "data_text" if name in DATA_NAMES or mostly(_is_data, role) else "source_target"


def _is_spoken(value: Any) -> bool:
    if not isinstance(value, str):
        return read_turns(value) is not None
    lines = [line for line in value[:5000].split("\n") if line.strip()]
    return len(lines) >= 2 and sum(_TURN.match(line) is not None for line in lines) >= 0.8 * len(lines)


def _is_data(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, (abc.Mapping, list, tuple)) and read_turns(value) is None
    text = value[:5000]
    act = _ACT.fullmatch(text)
    if act and ("=" in act["slots"] or " " not in text.strip()):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return bool(lines) and all(line.count(" | ") == 2 for line in lines)
