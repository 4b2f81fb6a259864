"""`judge.yaml`: a calibrated judge as a portable file.

The file holds all that scoring needs (criteria, how their scores are joined, the judge's own state with its weights
or its model, prompt and parser versions and sampling, the map to the human scale) and all that trust needs (alignments
with statistic, level, n and interval on both sides of the split, the ceiling, the golden set's hash, the date, who
approved the criteria on which evidence, how often the held-out items were opened, digests of the texts by which
newer labels are told apart, warnings).  Never a key: those come from the environment and stay there, and what looks
like one in a URL, a definition or a name is cut out.
`core.judge_files.judge_document` says what every field holds; `core.judge_files.calibrated_judge` is the judge that
comes back out of it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import yaml

from core.calibration.calibration_result import Calibration
from core.comparison import ceiling
from core.errors import AspectError
from core.judge_files.judge_reading import FORMATS, VERSION, Kind, checked, digest_of, with_leaves
from core.judging.judge_protocol import ITEM_PARTS, parts_read
from core.judging.parse import PARSER
from core.records import Alignment, Criteria, GoldenSet, content_digest
from core.secret_values import hide
from core.stats import MeasureSettings
from core.version import VERSION as CONCORD
from core.wording import VERSION_ORIGINS, percent

if TYPE_CHECKING:
    from core.projects.judge_line import Evidence, JudgeVersion, VersionDecided

NOTE = (
    "A judge calibrated with Concord. Criteria belong to the data they were calibrated on: on other data check the "
    "alignment again before trusting the scores."
)
UNAPPROVED = "Nobody has approved this judge{which}. Have it signed off before others rely on it."
LEFT_OUT = "What looked like a key or a password was left out of this file: {places}."
SKEWED = 0.75
"""From this share of equal labels on, the others decide little about an alignment over all items."""
FEW_RATERS = 2
FEW_NUMBERS = 4
"""So many stand on one line of a judge file."""


class Known(TypedDict, total=False):
    """What a calibration does not know itself and its file tells.

    `created` defaults to now (UTC).  `version` is which version of a project's judge this is, with its sign-off; what
    is no version of one was approved by nobody.  `ceiling` is the leave-one-rater-out alignment, `held_out_opened`
    counts the looks at the held-out items, `needs` are the parts that every item had (`needs_of`), `people` counts what
    people did, `warnings` are further sentences.
    """

    created: dt.datetime | None
    version: JudgeVersion | None
    ceiling: Alignment | None
    held_out_opened: int | None
    needs: Sequence[str] | None
    people: Mapping[str, int] | None
    warnings: Sequence[str]


def known_of(golden: GoldenSet, calibration: Calibration) -> Known:
    """What the judge file of `calibration` tells out of its golden set: ceiling, parts that items have, warnings.

    The ceiling stands at the statistic and level of the held-out alignment; None without single ratings.
    """
    held_out, aspect = calibration.held_out, calibration.task.aspect
    state = calibration.judge_state
    references = bool(state.get("sampling", {}).get("references", False))
    read = parts_read(state["spec"], references=references)
    known = Known(needs=needs_of(golden, read), warnings=label_warnings(golden, aspect))
    with suppress(AspectError):
        people = ceiling(golden, aspect, MeasureSettings(held_out.statistic, held_out.level))
        known["ceiling"] = people.leave_one_out.alignment
    return known


def judge_card(calibration: Calibration, **known: Unpack[Known]) -> dict[str, Any]:
    """The content of `judge.yaml` as plain JSON types, with its digest."""
    c = calibration
    version = known.get("version")
    ceiling, needs = known.get("ceiling"), known.get("needs")
    card = {
        "format": FORMATS["judge"],
        "version": VERSION,
        "concord": CONCORD,
        "digest": None,
        "created": (known.get("created") or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
        "note": NOTE,
        "task": {
            "aspect": c.task.aspect,
            "kind": c.task.kind,
            "scale": {"low": c.task.scale.low, "high": c.task.scale.high, "step": c.task.scale.step},
            "definition": c.task.definition,
        }
        | ({} if needs is None else {"needs": list(needs)}),
        "judge": dict(c.judge_state),
        "prompts": prompts_of(c.judge_state),
        "parser": parser_of(c.judge_state),
        "join": "mean",
        "criteria": [_criteria_entry(criteria) for criteria in c.chosen],
        "approved": version is not None and version.in_force,
        "approvals": [approval_entry(criteria.criteria_id, version) for criteria in c.chosen],
        **({} if version is None else {"judge_version": version_entry(version)}),
        "isotonic": None if c.isotonic is None else dict(c.isotonic),
        **({} if c.intervals is None else {"intervals": dict(c.intervals)}),
        "alignment": {
            "calibration": c.calibration.as_json(),
            "held_out": c.held_out.as_json(),
            "best_single": c.best_single.as_json(),
            "no_criteria": c.no_criteria.as_json(),
            "gain": gain_entry(c),
        },
        "ceiling": None if ceiling is None else ceiling.as_json(),
        "golden": golden_entry(c.golden_name, c.golden_digest, c.golden_columns),
        "split": {
            "kind": c.split.kind,
            "seed": c.split.seed,
            "n_calibration": len(c.split.calibration),
            "n_held_out": len(c.split.held_out),
        },
        "held_out_opened": known.get("held_out_opened"),
        "people": dict(known.get("people") or {}),
        "settings": c.settings.as_json(),
        "calls": c.calls,
        "work": c.work.as_json(),
        "warnings": [
            *c.warnings,
            *known.get("warnings", ()),
            *c.work.left_out,
            *unapproved(version),
        ],
        "texts": c.texts.as_json(),
    }
    return written(card, "judge")


def golden_entry(name: str, digest: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """The golden set as files name it, with the columns by which another file with the same ones is read."""
    return {"name": name, "digest": digest} | ({"columns": dict(columns)} if columns else {})


def gain_entry(calibration: Calibration) -> dict[str, Any]:
    """The gain over no criteria on held-out items as files hold it: a paired difference with what it is measured by."""
    held = calibration.held_out
    return {"statistic": held.statistic, "level": held.level} | calibration.gain.as_json()


def written(card: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """`card`, sealed.  JudgeError for one that could not be read again: the models that read it check it here too."""
    whole = sealed(card)
    checked(whole, kind, "this judge cannot be written")
    return whole


def sealed(card: Mapping[str, Any]) -> dict[str, Any]:
    """`card` in plain JSON types, without secrets (its warnings say what was cut out), and with its digest."""
    clean, places = without_secrets(with_leaves(card, _plain))
    if places:
        clean["warnings"] = [*clean.get("warnings", []), LEFT_OUT.format(places=", ".join(places))]
    return dict(clean) | {"digest": digest_of(clean)}


def judge_yaml(calibration: Calibration, **known: Unpack[Known]) -> str:
    """The text of `judge.yaml`, made to be read: keys in order, no escapes, texts of several lines as they stand."""
    return yaml_text(judge_card(calibration, **known))


def yaml_text(card: Mapping[str, Any]) -> str:
    """A card as YAML that `read_document` takes back."""
    return yaml.dump(
        with_leaves(card, _plain), Dumper=_ReadableDumper, sort_keys=False, allow_unicode=True, width=10_000
    )


def needs_of(golden: GoldenSet, read: Sequence[str]) -> tuple[str, ...]:
    """The target and those of the parts `read` by its judge that every item has: what it expects of other items."""
    parts = ("target", *(part for part in ITEM_PARTS if part in read))
    return tuple(part for part in parts if golden.items and all(getattr(item, part) for item in golden.items))


def label_warnings(golden: GoldenSet, aspect: str) -> list[str]:
    """Skewed labels and single raters; few labels are the calibration's own to tell."""
    labels = golden.labels(aspect)
    values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
    if not values.size:
        return []
    warnings = []
    share = counts.max() / counts.sum()
    if share >= SKEWED and values.size > 1:
        warnings.append(
            f"The labels are skewed: {percent(share)} of {counts.sum()} are {values[counts.argmax()]:g}. The alignment "
            "rests on the few others."
        )
    raters = {rating.rater_id for rating in golden.ratings if rating.aspect == aspect}
    if len(raters) < FEW_RATERS:
        warnings.append("The golden set holds no ratings by several people, so how well people agree is not known.")
    return warnings


def approval_entry(criteria_id: str, version: JudgeVersion | None) -> dict[str, Any]:
    """Where one of the judge's criteria stands: the last decision on the version that follows them."""
    decided = None if version is None else version.approval or (version.decisions[-1] if version.decisions else None)
    state = "draft" if version is None else "approved" if version.in_force else version.state
    return {
        "criteria": criteria_id,
        "state": state,
        "by": "" if decided is None else decided.actor,
        "at": None if decided is None else _when(decided),
        "reason": "" if decided is None else decided.reason,
        "evidence": None if decided is None else _evidence(decided.evidence),
    }


def version_entry(version: JudgeVersion) -> dict[str, Any]:
    """Which version of the judge a file holds, and every decision on it."""
    return {
        "id": version_id(version.aspect, version.number),
        "number": version.number,
        "state": version.state,
        "parent": version_id(version.aspect, version.made.parent) if version.made.parent else None,
        "author": version.made.actor,
        "note": version.made.note or VERSION_ORIGINS[version.made.origin],
        "approvals": [
            {
                **{"by": decision.actor, "at": _when(decision), "state": decision.state, "reason": decision.reason},
                "evidence": _evidence(decision.evidence),
            }
            for decision in version.decisions
        ],
    }


def version_id(aspect: str, number: int) -> str:
    """Id of a version in files: its aspect's, and its number."""
    return f"v{number}-{content_digest('aspect', aspect).split(':')[1][:8]}"


def _when(decision: VersionDecided) -> str:
    return decision.at.isoformat(timespec="seconds")


def _evidence(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {"run": evidence.run_id, "side": evidence.side, "alignment": evidence.alignment.as_json()}


def unapproved(version: JudgeVersion | None) -> list[str]:
    """A sentence for a judge that nobody has signed off; nothing for one that is."""
    if version is None:
        return [UNAPPROVED.format(which="")]
    elsewhere = "; it was where it came from" if version.imported_approval else ""
    which = f" (version {version.number} is {version.state}{elsewhere})"
    return [] if version.in_force else [UNAPPROVED.format(which=which)]


def prompts_of(judge: Mapping[str, Any]) -> dict[str, str]:
    """Purpose → prompt, name and version, of a judge's state; empty for one that is asked nothing in words."""
    sampling = judge.get("sampling")
    if not isinstance(sampling, Mapping):
        return {}
    named = {"score": "prompt", "draft": "draft_prompt", "refine": "refine_prompt"}
    prompts = {purpose: str(sampling[field]) for purpose, field in named.items() if sampling.get(field)}
    persona = sampling.get("persona", "none")
    return prompts if persona == "none" else prompts | {"persona": f"persona_{persona}.v1"}


def parser_of(judge: Mapping[str, Any]) -> str | None:
    """What reads the replies of a judge of this state; None for one whose scores are computed."""
    return None if judge.get("spec") == "offline" else PARSER


class _ReadableDumper(yaml.SafeDumper):
    """Safe YAML with texts of several lines as literal blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _LINE_ENDS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_LINE_ENDS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\ufeff]")
"""YAML may read these as line ends of its own, so a text with one of them is escaped."""


_ReadableDumper.add_representer(str, _text)


def _list(dumper: yaml.SafeDumper, values: list[Any]) -> yaml.SequenceNode:
    few = 1 < len(values) <= FEW_NUMBERS and all(isinstance(value, int | float | None) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=few or None)


_ReadableDumper.add_representer(list, _list)


def _criteria_entry(criteria: Criteria) -> dict[str, Any]:
    provenance = {name: value for name, value in asdict(criteria.provenance).items() if value not in ("", (), 0)}
    return {"id": criteria.criteria_id, "text": criteria.text, "provenance": provenance}


def _plain(value: Any, _: str) -> Any:
    """Numpy's numbers as Python's, for a YAML file without tags, and texts that can be written."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


# ── keys and passwords ───────────────────────────────────────────────────────────────────────────────────────

NUMBERS = ("direction", "support")
"""Keys of numbers in base64, which may look like anything."""


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """`value` with whatever looks like a password in a URL or like a key cut out, and the paths where it stood.

    Plain JSON values only; texts in which nothing was found stay the same objects.
    """
    places: list[str] = []

    def clean(leaf: Any, path: str) -> Any:
        if not isinstance(leaf, str) or path.rpartition(".")[2] in NUMBERS:
            return leaf
        cleaned = hide(leaf)
        places.extend([path or "the file"] if cleaned != leaf else [])
        return leaf if cleaned == leaf else cleaned

    return with_leaves(value, clean), places
