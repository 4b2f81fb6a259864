"""How each public set becomes golden rows: one function a set, from the checked rows of its files.

Ids are made in order of first appearance, raters are numbered: golden files carry no names of people.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict, deque

from core.data.public_sets.fields import Converted, Fields, Ids, Number, Parts, Raters, Row, grouped, mean, slug

# ── SummEval ─────────────────────────────────────────────────────────────────────────────────────────────────

SUMMEVAL_ASPECTS = ("coherence", "consistency", "fluency", "relevance")
_SUMMEVAL_PANELS = (("expert", "expert_annotations"), ("turker", "turker_annotations"))
_ROUNDING = 1e-3


def summeval(parts: Parts) -> Converted:
    """SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

    The annotation file of its home (``ratings``, JSONL) comes without the articles, so the texts are taken from
    UniEval's release of the same items (``texts``, JSON) and the ratings joined to them by document and system.
    """
    rated = {(row.name("id"), row.name("model_id")): row for row in parts.get("ratings", ())}
    ids, rows, n_other = Ids("se"), [], 0
    for given in parts["texts"]:
        row = _summeval_text(given, ids)
        if rated:
            ratings = rated.get((row["doc_id"], given.name("system_id")))
            if ratings is None:
                message = f"no ratings are there for document {row['doc_id']!r} by {given.name('system_id')!r}."
                raise given.error(message, "system_id")
            row["references"] = ratings.texts("references")
            for panel, field in _SUMMEVAL_PANELS:
                for aspect in SUMMEVAL_ASPECTS:
                    row[f"ann_{panel}_{aspect}"] = [rating.number(aspect, 1, 5) for rating in ratings.each(field)]
            n_other += any(abs(mean(row[f"ann_expert_{a}"]) - row[f"human_{a}"]) > _ROUNDING for a in SUMMEVAL_ASPECTS)
        rows.append(row)
    notes = [] if rated else ["Only the texts were given: labels are there, individual ratings are not."]
    if n_other:
        notes.append(f"{n_other} items have a label that is not the mean of their expert ratings.")
    return Converted(rows, tuple(notes))


def _summeval_text(given: Fields, ids: Ids) -> Row:
    document, scores = given.name("doc_id"), given.inside("scores")
    source_id, system_id = ids.source(document), slug(given.name("system_id"))
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "doc_id": document,
        "source": given.text("source"),
        "target": given.text("system_output"),
        "references": [given.text("reference")],
        **{f"human_{aspect}": round(scores.number(aspect, 1, 5), 10) for aspect in (*SUMMEVAL_ASPECTS, "overall")},
    }


# ── Newsroom ─────────────────────────────────────────────────────────────────────────────────────────────────

NEWSROOM_ASPECTS = ("coherence", "fluency", "informativeness", "relevance")
_PARAGRAPH = re.compile(r"(?:\s*</?p>\s*)+", re.IGNORECASE)


def newsroom(parts: Parts) -> Converted:
    """Newsroom: 60 articles × 7 systems, three crowd ratings of 1 to 5 an aspect, one rating a row (``ratings``, CSV).

    The raters are not named.
    """
    ids, rows = Ids("nr"), []
    texts = ("ArticleText", "SystemSummary")
    for given in grouped(parts["ratings"], ("ArticleID", "System"), texts, "article and system").values():
        first = given[0]
        source_id, system_id = ids.source(first.name("ArticleID")), slug(first.name("System"))
        ratings = {
            aspect: [row.number(f"{aspect.capitalize()}Rating", 1, 5) for row in given] for aspect in NEWSROOM_ASPECTS
        }
        golden: Row = {
            "item_id": ids.item(source_id, system_id),
            "source_id": source_id,
            "system_id": system_id,
            "doc_id": first.name("ArticleID"),
            "title": _without_marks(first.text("ArticleTitle")),
            "source": _without_marks(first.text("ArticleText")),
            "target": _without_marks(first.text("SystemSummary")),
        }
        golden |= {f"human_{aspect}": mean(values) for aspect, values in ratings.items()}
        rows.append(golden | {f"ann_{aspect}": values for aspect, values in ratings.items()})
    return Converted(rows)


def _without_marks(text: str) -> str:
    """The file is encoded for a web page: entities back to characters, paragraph marks to line breaks."""
    return _PARAGRAPH.sub("\n", html.unescape(text)).strip()


# ── QAGS ─────────────────────────────────────────────────────────────────────────────────────────────────────

_VOTES = {"yes": 1, "no": 0}


def qags(parts: Parts, *, prefix: str, system: str) -> Converted:
    """QAGS: whether summaries say only what their article says; three workers vote on each sentence (``votes``, JSONL).

    The label is the share of sentences whose majority says yes (XSUM has one sentence a summary, so 0 or 1).  A
    worker's rating of a summary is the share of its sentences that this worker supports, where the same workers voted
    on all.  `system` is from the paper, the file does not name it.
    """
    ids = Ids(prefix)
    rows = [_qags_row(given, ids, system) for given in parts["votes"]]
    n_mixed = sum("ann_consistency" not in row for row in rows)
    notes = [
        f"The system ({system}) is named by the paper, not by the file.",
        "Labels are majorities of votes, ratings a worker's own votes: the mean of ratings may differ from the label.",
    ]
    if n_mixed:
        notes.append(f"{n_mixed} summaries have other workers from sentence to sentence: no individual ratings there.")
    return Converted(rows, tuple(notes))


def _qags_row(given: Fields, ids: Ids, system: str) -> Row:
    sentences = given.each("summary_sentences")
    ballots = [{vote.name("worker_id"): _vote(vote) for vote in each.each("responses")} for each in sentences]
    source_id = ids.source(str(given.row))
    row: Row = {
        "item_id": ids.item(source_id),
        "source_id": source_id,
        "system_id": system,
        "source": given.text("article"),
        "target": " ".join(sentence.text("sentence") for sentence in sentences),
        "human_consistency": mean([int(2 * sum(ballot.values()) > len(ballot)) for ballot in ballots]),
    }
    workers = list(ballots[0])
    if all(ballot.keys() == ballots[0].keys() for ballot in ballots):
        row["annotators"] = [f"W{worker}" for worker in workers]
        row["ann_consistency"] = [mean([ballot[worker] for ballot in ballots]) for worker in workers]
    return row


def _vote(response: Fields) -> int:
    answer = response.text("response").lower()
    if answer not in _VOTES:
        raise response.wrong("response", "yes or no", answer)
    return _VOTES[answer]


# ── SFRES and SFHOT ──────────────────────────────────────────────────────────────────────────────────────────

DATA_TO_TEXT_ASPECTS = {"informativeness": "informativeness", "naturalness": "naturalness", "quality": "overall"}
DATA_TO_TEXT_METRICS = (
    "TER Bleu_1 Bleu_2 Bleu_3 Bleu_4 ROUGE_L NIST LEPOR CIDEr METEOR sim.mr.sys lev.dist sys.read.flesch sys.cpw "
    "sys.ref.len sys.wps sys.sps sys.spw sys.n.poly sys.pspw n.misspel parser.sc.mean parser.sc.max"
).split()


def data_to_text(parts: Parts, *, prefix: str, dataset: str) -> Converted:
    """SFRES and SFHOT: sentences about restaurants and hotels, each label the median of three crowd ratings of 1 to 6.

    UniEval's release (``texts``, JSON) has the texts with one reference each; the authors' own table of all three sets
    (``metrics``, CSV) names the systems and stores 23 metric scores.  The two are joined by meaning representation,
    text and labels; where a text occurs several times with the same labels, in the order of the files.
    """
    known: dict[tuple[object, ...], deque[Fields]] = defaultdict(deque)
    for scored in parts.get("metrics", ()):
        if scored.text("dataset") == dataset:
            labels = tuple(scored.number(aspect, 1, 6) for aspect in DATA_TO_TEXT_ASPECTS)
            known[_squeezed(scored.text("mr")), _squeezed(scored.text("sys_ref")), labels].append(scored)
    ids, rows, n_unknown = Ids(prefix), [], 0
    for given in parts["texts"]:
        scores = given.inside("scores")
        labels = tuple(scores.number(field, 1, 6) for field in DATA_TO_TEXT_ASPECTS.values())
        same = known.get((_squeezed(given.text("source")), _squeezed(given.text("system_output")), labels))
        n_unknown += not same
        rows.append(_data_to_text_row(given, labels, same.popleft() if same else None, ids))
    notes = ["Labels are medians; the ratings behind them are not in these files."]
    if not known:
        notes.append("Only the texts were given: systems are not named and no metric scores are there.")
    elif n_unknown:
        notes.append(f"{n_unknown} of {len(rows)} texts are not in the table of systems and metrics: left empty there.")
    return Converted(rows, tuple(notes))


def _data_to_text_row(given: Fields, labels: tuple[Number, ...], scored: Fields | None, ids: Ids) -> Row:
    source = given.text("source")
    source_id = ids.source(source)
    system_id = slug(scored.name("system")) if scored else None
    row: Row = {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": source,
        "target": given.text("system_output"),
        "references": [given.text("reference")],
        **{f"human_{aspect}": label for aspect, label in zip(DATA_TO_TEXT_ASPECTS, labels, strict=True)},
    }
    if scored is not None:
        for name in DATA_TO_TEXT_METRICS:
            row[f"metric_{name.lower().replace('.', '_')}"] = scored.number_or_none(name)
    return row


def _squeezed(text: str) -> str:
    """Letters and digits only, in lower case: the two files space and capitalise differently."""
    return "".join(character for character in text.lower() if character.isalnum())


# ── USR ──────────────────────────────────────────────────────────────────────────────────────────────────────

USR_ASPECTS = {
    "understandability": ("Understandable", 0, 1),
    "naturalness": ("Natural", 1, 3),
    "coherence": ("Maintains Context", 1, 3),
    "engagingness": ("Engaging", 1, 3),
    "groundedness": ("Uses Knowledge", 0, 1),
    "overall": ("Overall", 1, 5),
}
_NO_FACT = "_nofact"


def usr(parts: Parts, *, prefix: str) -> Converted:
    """USR (Topical-Chat, Persona-Chat; ``dialogues``, JSON): three raters of responses, six aspects on three scales."""
    ids, raters = Ids(prefix), Raters()
    rows: list[Row] = []
    for dialogue in parts["dialogues"]:
        source_id = ids.source(str(dialogue.row))
        fact = dialogue.text("fact")
        shared = {
            "source": dialogue.text("context"),
            "context": "" if fact == _NO_FACT else fact,
            "annotators": [raters.rater(name) for name in dialogue.texts("annotators")],
        }
        rows += [_usr_row(response, source_id, shared, ids) for response in dialogue.each("responses")]
    return Converted(rows)


def _usr_row(response: Fields, source_id: str, shared: Row, ids: Ids) -> Row:
    system_id = slug(response.name("model"))
    ratings = {aspect: response.numbers(field, low, high) for aspect, (field, low, high) in USR_ASPECTS.items()}
    for aspect, values in ratings.items():
        if len(values) != len(shared["annotators"]):
            message = f"{len(values)} ratings came where 'annotators' names {len(shared['annotators'])} raters."
            raise response.error(message, USR_ASPECTS[aspect][0])
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": shared["source"],
        "context": shared["context"],
        "target": response.text("response"),
        **{f"human_{aspect}": mean(values) for aspect, values in ratings.items()},
        "annotators": shared["annotators"],
        **{f"ann_{aspect}": values for aspect, values in ratings.items()},
    }


# ── WebNLG ───────────────────────────────────────────────────────────────────────────────────────────────────

WEBNLG_ASPECTS = {"fluency": "fluency", "grammar": "grammaticality", "semantics": "semantic_adequacy"}
_WEBNLG_METRICS = ("bleu", "meteor", "ter")
_WEBNLG_GOLD = "webnlg"


def webnlg(parts: Parts) -> Converted:
    """WebNLG 2017: 223 sets of triples × 10 teams, crowd ratings of 1 to 3, one rating a row (``ratings``, CSV).

    The team ``webnlg`` is the gold text itself: it is the reference of the others, and the metric scores stored for it
    (always 1) stand for no measurement, so they are left out.
    """
    groups = grouped(parts["ratings"], ("mr", "team"), ("text",), "data and team")
    gold = {data: given[0].text("text") for (data, team), given in groups.items() if team == _WEBNLG_GOLD}
    ids, workers = Ids("wn"), Raters("W")
    rows = [_webnlg_row(data, team, given, ids, workers) for (data, team), given in groups.items()]
    for row, (data, team) in zip(rows, groups, strict=True):
        if team != _WEBNLG_GOLD and data in gold:
            row["references"] = [gold[data]]
    n_empty = sum(not row["target"] for row in rows)
    notes = [
        f"The team {_WEBNLG_GOLD!r} is the gold text: leave it out when testing metrics that compare with references."
    ]
    if n_empty:
        notes.append(f"{n_empty} texts are empty in the file; judges leave them unscored.")
    return Converted(rows, tuple(notes))


def _webnlg_row(data: str, team: str, given: list[Fields], ids: Ids, workers: Raters) -> Row:
    first, source_id, system_id = given[0], ids.source(data), slug(team)
    ratings = {a: [row.number_or_none(field, 1, 3) for row in given] for a, field in WEBNLG_ASPECTS.items()}
    labels = {aspect: [value for value in values if value is not None] for aspect, values in ratings.items()}
    text = first.text("text")
    return {
        "item_id": ids.item(source_id, system_id),
        "source_id": source_id,
        "system_id": system_id,
        "source": re.sub(r"\s*<br>\s*", "\n", data),
        "target": "" if text == "NA" else text,
        "category": first.text("category"),
        "seen": first.text("type"),
        "system_type": first.text("systemtype"),
        **{f"human_{aspect}": mean(values) if values else None for aspect, values in labels.items()},
        "annotators": [workers.rater(row.name("X_worker_id")) for row in given],
        **{f"ann_{aspect}": values for aspect, values in ratings.items()},
        **{f"metric_{name}": None if team == _WEBNLG_GOLD else first.number_or_none(name) for name in _WEBNLG_METRICS},
    }


# ── ASSET ────────────────────────────────────────────────────────────────────────────────────────────────────

ASSET_ASPECTS = ("fluency", "meaning", "simplicity")


def asset(parts: Parts) -> Converted:
    """ASSET: 100 simplified sentences, sliders from 0 to 100, one rating a row (``ratings``, CSV).

    Raters come in the order of their numbers.
    """
    for given in parts["ratings"]:
        if (aspect := given.text("aspect")) not in ASSET_ASPECTS:
            raise given.wrong("aspect", f"one of {', '.join(ASSET_ASPECTS)}", aspect)
    sentences = grouped(parts["ratings"], ("original_sentence_id",), ("original", "simplification"), "sentence id")
    ids = Ids("as")
    rows = [_asset_row(sentence, given, ids) for (sentence,), given in sentences.items()]
    note = "The systems are not named, and the references of the corpus are not in this file."
    return Converted(rows, (note,))


def _asset_row(sentence: str, given: list[Fields], ids: Ids) -> Row:
    first, source_id = given[0], ids.source(sentence)
    row: Row = {
        "item_id": ids.item(source_id),
        "source_id": source_id,
        "sentence_id": sentence,
        "source": first.text("original"),
        "target": first.text("simplification"),
    }
    for aspect in ASSET_ASPECTS:
        rated = [rating for rating in given if rating.text("aspect") == aspect]
        if not rated:
            raise first.error(f"the sentence has no rating of {aspect}.", "aspect")
        rated.sort(key=lambda rating: rating.number("worker_id"))
        ratings = [rating.number("rating", 0, 100) for rating in rated]
        row[f"human_{aspect}"] = mean(ratings)
        row[f"annotators_{aspect}"] = [f"W{rating.number('worker_id')}" for rating in rated]
        row[f"ann_{aspect}"] = ratings
    return row
