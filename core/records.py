"""Immutable records shared by all layers. The module imports no other layer.

A missing label or score is NaN in arrays (numpy float64), `None` in records, and `null` in files.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError


def json_fields(record: Any, but: Sequence[str] = ()) -> dict[str, Any]:
    """Convert a dataclass to JSON values by field name, without the fields in `but`.

    "" becomes null, and a nested record is converted by its `as_json`. An interval becomes two fields: `interval` with
    `[low, high]`, and `interval_method`. An empty or false field with the metadata "silent" is left out.
    """
    body = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if each.name not in but and (value or not each.metadata.get("silent")):
            body[each.name] = _json_value(value)
    if "interval" in body:
        body["interval_method"] = getattr(record.interval, "method", None)
    return body


def _json_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json_value(inner) for inner in value]
    if hasattr(value, "as_json"):
        return value.as_json()
    return None if isinstance(value, str) and not value else value


class JsonRecord:
    """Base class of records that `json_fields` converts to JSON."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


VERSION = "0.1.0"
"""Version of Concord in exported files; a test compares it with `pyproject.toml`."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ItemKind = Literal["single", "source_target", "source_context_target", "conversation", "data_text", "pair"]
Statistic = Literal["pearson", "spearman", "kendall"]
Level = Literal["dataset", "sample", "system"]
Origin = Literal["none", "draft", "refine", "edit", "given"]
JudgeKind = Literal["calibrated", "no criteria", "style", "imported", "metric", "repeval", "fused"]
UnscoredReason = Literal[
    "no verdict", "out of range", "refused", "empty", "truncated", "provider error", "missing input", "budget"
]

STATISTICS: tuple[Statistic, ...] = ("pearson", "spearman", "kendall")
LEVELS: tuple[Level, ...] = ("dataset", "sample", "system")

VERSUS = " vs "
"""Separates the two systems of a pair in its `system_id`."""


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no spaces, for content hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_digest(tag: str, value: Any) -> str:
    """Return ``"TAG:HASH"``, where HASH is the SHA-256 of the canonical JSON of `value`."""
    return f"{tag}:{hashlib.sha256(canonical_json(value).encode()).hexdigest()}"


# ── the golden set ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Item:
    """A text to judge. Absent parts are empty strings."""

    item_id: str
    target: str
    source_id: str = ""
    system_id: str = ""
    source: str = ""
    context: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rating:
    """The label of one rater for one item on one aspect."""

    item_id: str
    rater_id: str
    aspect: str
    value: float
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Closed range of ratings.

    `step` is None for a continuous scale. `given` is true if a user confirmed the scale.
    """

    low: float
    high: float
    step: float | None = None
    given: bool = False

    def holds(self, value: float) -> bool:
        """Return whether `value` lies between the ends of the scale. It need not be a step."""
        return self.low <= value <= self.high

    @property
    def two_steps(self) -> bool:
        """Whether the scale has only two steps, such as 0 and 1."""
        return self.step is not None and self.high - self.low == self.step

    def __str__(self) -> str:
        return f"{self.low:g}-{self.high:g}"


@dataclass(frozen=True, slots=True)
class AspectLabels:
    """The labels of one aspect of a golden set.

    Attributes:
        values: One label per item of `GoldenSet.items`; None for an unlabelled item.
        ranks: Whether the labels were given as ranks.
        reasons: Item id → reasons for the label. Reasons for a single rating are in `Rating.comment`.
    """

    aspect: str
    scale: Scale
    values: tuple[float | None, ...]
    ranks: bool = field(default=False, metadata={"silent": True})
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata={"silent": True})

    @property
    def n_labelled(self) -> int:
        return sum(value is not None for value in self.values)


@dataclass(frozen=True)
class GoldenSet:
    """Items with human labels.

    Attributes:
        columns: Role → column of the file that was read, where the two names differ. The key "values" has the meanings
            of values as JSON (`core.data.columns.Values`).
        digest: Content hash of all fields except `name` and `columns`.
    """

    name: str
    kind: ItemKind
    items: tuple[Item, ...]
    aspects: Mapping[str, AspectLabels]
    ratings: tuple[Rating, ...] = ()
    metrics: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    given_split: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def digest(self) -> str:
        body = {
            "kind": self.kind,
            "items": [_fields(item) for item in self.items],
            "aspects": {
                name: _fields(labels) | {"scale": _fields(labels.scale)} for name, labels in self.aspects.items()
            },
            "ratings": [_fields(rating) for rating in self.ratings],
            "metrics": dict(self.metrics),
            "given_split": self.given_split,
        }
        return content_digest("golden", body)

    @cached_property
    def item_ids(self) -> tuple[str, ...]:
        return tuple(item.item_id for item in self.items)

    @cached_property
    def source_codes(self) -> IntArray:
        """Codes of the items' sources, (n_items,): 0 to n_sources - 1, in order of first appearance."""
        return _codes([item.source_id for item in self.items])

    @cached_property
    def system_codes(self) -> IntArray:
        """Codes of the items' systems, (n_items,): from 0, in order of first appearance; all 0 without system names."""
        return _codes([item.system_id for item in self.items])

    @property
    def n_sources(self) -> int:
        return int(self.source_codes.max()) + 1 if self.items else 0

    @property
    def n_systems(self) -> int:
        """Number of named systems; a pair names two."""
        names = {item.system_id for item in self.items}
        if self.kind == "pair":
            names = {member for name in names for member in name.split(VERSUS, 1)}
        return len(names - {""})

    def labels(self, aspect: str) -> FloatArray:
        """Return the labels (n_items,) as float64; NaN for an unlabelled item.

        Raises KeyError for an unknown aspect.
        """
        return np.array([np.nan if v is None else v for v in self.aspects[aspect].values], dtype=np.float64)

    def reasons(self, aspect: str) -> dict[str, tuple[str, ...]]:
        """Map each item id to the distinct reasons for its labels. Reasons for single ratings come first."""
        said = [(rating.item_id, rating.comment) for rating in self.ratings if rating.aspect == aspect]
        said += [(item_id, text) for item_id, texts in self.aspects[aspect].reasons.items() for text in texts]
        found: dict[str, dict[str, None]] = {}
        for item_id, text in said:
            if text.strip():
                found.setdefault(item_id, {})[text.strip()] = None
        return {item_id: tuple(texts) for item_id, texts in found.items()}


def _fields(record: Item | Rating | Scale | AspectLabels) -> dict[str, Any]:
    """Return the fields of a flat record; `dataclasses.asdict` takes twice as long on 38,000 ratings."""
    return {name: got for name in record.__slots__ if (got := getattr(record, name)) or name not in _ADDED_LATER}


_ADDED_LATER = ("ranks", "reasons")
"""Fields that a digest omits while they are empty, so that older golden sets keep their digests."""


def _codes(names: Sequence[str]) -> IntArray:
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a golden set: positions of its calibration items and held-out items. No source is in both sets.

    Attributes:
        kind: With "sources+systems", no system is in both sets either.
        dropped: Number of labelled items left out to separate the systems.
    """

    calibration: tuple[int, ...]
    held_out: tuple[int, ...]
    kind: Literal["sources", "sources+systems"]
    seed: int
    dropped: int = 0


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Anchor:
    """A level of the scale and its description."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Task:
    """A judging task: rate this aspect of items of this kind on this scale.

    `levels` are the described levels of the scale, lowest first.
    """

    aspect: str
    kind: ItemKind
    scale: Scale
    definition: str = ""
    levels: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True)
class RatedExample:
    """A labelled item to show as an example in a judge's prompt.

    A `spare` example is used only to replace an example with the same source as the judged item.
    """

    item: Item
    label: float
    spare: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of criteria.

    For a draft, `item_ids` are the example items. For a refinement, they are the misaligned items in the prompt.
    """

    origin: Origin = "given"
    round: int = 0
    parents: tuple[str, ...] = ()
    item_ids: tuple[str, ...] = ()
    size: int = 0
    trial: int = 0
    sample: int = 0
    author: str = ""
    note: str = ""


@dataclass(frozen=True)
class Criteria:
    """Scoring rules in natural language. An empty text stands for the judge without criteria (the baseline).

    Attributes:
        weights: Weights of the clauses, for a judge that rates clause by clause. They are at least 0 and sum to 1. ()
            means equal weights.
    """

    text: str
    aspect: str
    provenance: Provenance = field(default_factory=Provenance, compare=False)
    weights: tuple[float, ...] = field(default=(), compare=False, metadata={"silent": True})

    @cached_property
    def criteria_id(self) -> str:
        """ID of the criteria: "c" and 12 hex digits of a hash of aspect and text.

        Differences in white space are ignored.
        """
        folded = " ".join(unicodedata.normalize("NFC", self.text).split())
        return "c" + content_digest("criteria", [self.aspect, folded]).split(":")[1][:12]


@dataclass(frozen=True, slots=True)
class Scored:
    """A judge's score of one item, on the task's scale.

    Attributes:
        value: Mean of the `n_read` readable replies.
        calibrated: The score mapped to the raters' scale.
        n_unweighted: Number of replies without token probabilities.
        low, high: Ends of the interval around `calibrated`.
        expected_error: Expected error of `calibrated`.
        turned: For a pair judged in both orders, the score with text B first, inverted so that it can be compared. The
            score with text A first is 2·value − turned.
        calibration_item: Whether the item's label was used to choose or fit the judge. Alignment on such items is
            optimistic.
        clauses: (`value`, `turned`) of each clause that was rated separately.
    """

    item_id: str
    value: float
    explanation: str = ""
    raw: tuple[str, ...] = ()
    n_read: int = 1
    n_unread: int = 0
    calibrated: float | None = None
    n_unweighted: int = 0
    low: float | None = None
    high: float | None = None
    expected_error: float | None = None
    turned: float | None = None
    calibration_item: bool = False
    clauses: tuple[tuple[float, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Unscored:
    """An item without a readable score.

    `detail` explains the reason in a sentence, and `raw` has the original replies. `calibration_item` is explained in
    `Scored`.
    """

    item_id: str
    reason: UnscoredReason
    detail: str = ""
    raw: tuple[str, ...] = ()
    calibration_item: bool = False


Verdict = Scored | Unscored


@dataclass(frozen=True, slots=True)
class Usage:
    """Number and cost of requests.

    `requests` counts the requests sent, and `cached` the replies found in the store. `cost` is None if unknown.
    """

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    cached_prompt_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        priced = [usage.cost for usage in (self, other) if usage.cost is not None or usage.requests]
        cost = None if None in priced or not priced else sum(filter(None, priced), 0.0)
        counts = [count.name for count in fields(self) if count.name != "cost"]
        return Usage(cost=cost, **{name: getattr(self, name) + getattr(other, name) for name in counts})


@dataclass(frozen=True)
class ScoreMatrix:
    """Scores of several criteria for several items.

    Attributes:
        values: Scores (n_criteria, n_items); NaN for an item without a score.
        unscored: Criteria id → the items without a score, in order, with reasons.
        calls: Number of pairs of criteria and item, including cached pairs. Budgets limit this number.
        turned: Like `values`, but as explained in `Scored.turned`. None if pairs were judged in one order only.
    """

    criteria_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    values: FloatArray
    unscored: Mapping[str, tuple[Unscored, ...]] = field(default_factory=dict)
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    turned: FloatArray | None = None


@dataclass(frozen=True)
class JudgeScores:
    """The scores of one judge on a golden set.

    Attributes:
        values: Scores (n_items,) in the order of the golden set; NaN for an item without a score.
        unscored: The items without a score, with reasons.
        seen: Positions of items whose labels were used to choose or fit the judge. Alignment is not reported on them,
            because it would be optimistic.
        on_scale: Whether `values` lie on the scale of the aspect.
        calls_per_item: Number of calls for one score; None if unknown.
        turned: Scores (n_items,) as explained in `Scored.turned`.
        mapped: Scores (n_items,) mapped to the raters' scale; None without a map.
    """

    name: str
    kind: JudgeKind
    aspect: str
    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    seen: tuple[int, ...] = ()
    on_scale: bool = True
    higher_is_better: bool = True
    note: str = ""
    run_id: str = ""
    calls_per_item: float | None = None
    turned: FloatArray | None = None
    mapped: FloatArray | None = None

    @property
    def n_scored(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def upward(self) -> FloatArray:
        """`values`, with the sign changed if necessary so that higher is better."""
        return self.values if self.higher_is_better else -self.values

    @property
    def has_raters_scale(self) -> bool:
        """Whether the judge has scores on the raters' scale, original or mapped."""
        return self.mapped is not None or (self.on_scale and self.higher_is_better)

    @property
    def on_raters_scale(self) -> FloatArray:
        """Scores (n_items,) for direct comparison with labels: `mapped` if there is a map, otherwise `upward`."""
        return self.upward if self.mapped is None else self.mapped


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Measure:
    """A statistic of agreement and the level at which it is computed."""

    statistic: Statistic
    level: Level

    def __str__(self) -> str:
        return f"{self.statistic} at {self.level} level"


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval; `method` is for example "jackknife over 30 sources, t(29) on Fisher's z".

    `n_sources` is the number of sources, None if unknown.
    """

    low: float
    high: float
    confidence: float = 0.95
    method: str = ""
    n_sources: int | None = field(default=None, compare=False)

    def __iter__(self) -> Iterator[float]:
        """Yield low and high."""
        yield from (self.low, self.high)

    def within(self, low: float, high: float) -> Interval:
        """Clip the interval to a range, such as a scale."""
        return replace(self, low=min(max(self.low, low), high), high=max(min(self.high, high), low))

    def as_json(self) -> list[float]:
        return list(self)


@dataclass(frozen=True, slots=True)
class Alignment(JsonRecord):
    """Agreement of scores with raters.

    Attributes:
        value: The coefficient. None if undefined (constant scores or labels, or too few items).
        n: Number of items used; at system level, number of systems.
        n_groups: At sample level, number of sources averaged.
        n_left_out: At sample level, number of sources without a coefficient.
        n_unscored: Number of labelled items without a score.
        no_interval: Why there is no interval, and how to get one; "" if unknown.
        n_calibration_left_out: Number of calibration items of the judge that were left out, as is usual.
        n_calibration_kept: Number of calibration items that were used on request.
    """

    statistic: Statistic
    level: Level
    value: float | None
    n: int
    n_groups: int = 0
    n_left_out: int = 0
    n_unscored: int = 0
    interval: Interval | None = None
    reason: str = ""
    no_interval: str = field(default="", metadata={"silent": True})
    n_calibration_left_out: int = field(default=0, metadata={"silent": True})
    n_calibration_kept: int = field(default=0, metadata={"silent": True})

    @property
    def measure(self) -> Measure:
        return Measure(self.statistic, self.level)


# ── settings records ──────────────────────────────────────────────────────────────────────────────────────────────


def setting(
    default: Any, help_: str = "", *, low: float | None = None, high: float | None = None, flag: str = ""
) -> Any:
    """Define a settings field with a default, a help text, and inclusive bounds.

    Each field with a help text becomes a command option. `flag` changes the name of the option.
    """
    return field(default=default, metadata={"help": help_, "low": low, "high": high, "flag": flag})


@lru_cache(maxsize=64)
def choices(record: type) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each `Literal` field, including None if the field may be None."""
    found = {}
    for name, hint in get_type_hints(record).items():
        among = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        parts = [part for part in among if get_origin(part) is Literal]
        if parts:
            found[name] = (*((None,) if type(None) in among else ()), *get_args(parts[0]))
    return found


def check_settings(record: Any) -> None:
    """Raise UsageError if a value is out of bounds or not among its choices."""
    among = choices(record.__class__)
    for each in fields(record):
        value, low, high = getattr(record, each.name), each.metadata.get("low"), each.metadata.get("high")
        allowed = among.get(each.name)
        if allowed and value not in allowed:
            raise UsageError(f"{each.name} must be one of {', '.join(map(str, allowed))}, not {value!r}.")
        if value is None or low is None or low <= value <= (value if high is None else high):
            continue
        bounds = f"be at least {low:,}" if high is None else f"lie between {low:,} and {high:,}"
        raise UsageError(f"{each.name} must {bounds}, not {value}.")


# ── texts: blanks, names, words, length ──────────────────────────────────────────────────────────────────────────────

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9fe"  # Burmese
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u0f00-\u0fff\ua980-\ua9df"  # Tibetan, Javanese
    "\u1950-\u19df\u1a20-\u1aad"  # Tai Le, New Tai Lue, Tai Tham
    "\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Bopomofo, Han
    "\U00020000-\U0003ffff"  # Han beyond the first plane
)
"""Scripts without spaces between words."""

_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Invisible characters whose category is that of a letter, a mark or a symbol."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def is_blank(text: str) -> bool:
    """Return whether a text has no visible characters."""
    if not text or text.isspace():
        return True
    if text[0].isalnum() and text[0].isascii():  # fast path for nearly every text
        return False
    return all(
        char.isspace()
        or char in _INVISIBLE
        or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp")
        or "\ufe00" <= char <= "\ufe0f"  # variation selectors
        for char in text
    )


def visible_name(text: str) -> str:
    """Trim a name and remove invisible characters, so that two names that look the same are equal.

    Joiners within emoji are kept.
    """
    if text.isascii():
        return text.strip()
    shown = ""
    for char in text:
        joins_emoji = char == "\u200d" and shown != "" and unicodedata.category(shown[-1]) in ("So", "Sk", "Mn")
        if char not in _INVISIBLE and (unicodedata.category(char) != "Cf" or joins_emoji):
            shown += char
    return shown.strip()


def words_of(text: str) -> list[str]:
    """Split a text into words without punctuation; each character of a script without spaces is a word.

    >>> words_of("Don't panic: 你好 Straße")
    ["Don't", 'panic', '你', '好', 'Straße']
    """
    return _patterns()[0].findall(text)


def text_length(text: str) -> int:
    """Count words separated by white space; each character of a script without spaces counts as one word.

    >>> [text_length(text) for text in ("a well-known town", "你好，世界", "GPT-4 是 模型")]
    [3, 4, 4]
    """
    if text.isascii() or not _HAS_UNSPACED.search(text):
        return len(text.split())
    return sum(any(map(str.isalnum, piece)) for piece in with_spaces(text).split())


def is_unspaced(text: str) -> bool:
    """Return whether most of a text is in a script without spaces."""
    return not text.isascii() and 2 * len(_HAS_UNSPACED.findall(text)) > text_length(text)


def with_spaces(text: str) -> str:
    """Put spaces around each character of a script without spaces, for tools that split at spaces."""
    if text.isascii() or not _HAS_UNSPACED.search(text):
        return text
    return _patterns()[1].sub(r" \g<0> ", text)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for a word, and for a character with its marks in a script without spaces."""
    # Vowel signs and accents that combine belong to the character before them, but `\w` does not match them.
    marks = "".join(map(chr, filter(lambda code: unicodedata.category(chr(code))[0] == "M", range(0x300, 0x1F000))))
    marks = f"{re.escape(marks)}\u00ad\u200c\u200d"
    letter = rf"[^\W_{_UNSPACED}]"
    within = rf"(?:{letter}|[{marks}])*"
    character = rf"(?=\w)[{_UNSPACED}][{marks}]*"
    return re.compile(rf"{character}|{letter}{within}(?:['’]{letter}{within})*"), re.compile(character)
