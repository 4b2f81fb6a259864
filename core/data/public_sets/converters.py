"""How each public set becomes golden rows: one function a set, from the checked rows of its files.

Which field holds which aspect, on which scale, stands in ``catalogue.yaml``; here is only what a table cannot say.
Ids are made in order of first appearance, raters are numbered: golden files carry no names of people.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping

from core.data.public_sets.records import Converted, Fields, Ids, Parts, Rated, Row, grouped, mean, rated, slug

_ROUNDING = 1e-3
_PARAGRAPH = re.compile(r"(?:\s*</?p>\s*)+", re.IGNORECASE)
_VOTES = {"yes": 1, "no": 0}
_NO_FACT = "_nofact"
_WEBNLG_GOLD = "webnlg"


def summeval(parts: Parts, aspects: Rated, *, panels: Mapping[str, str]) -> Converted:
    """SummEval: 100 CNN/DailyMail articles × 16 systems, rated 1 to 5 by 3 experts and 5 crowd workers.

    The annotation file of its home (``ratings``, JSONL) comes without the articles, so the texts are taken from
    UniEval's release of the same items (``texts``, JSON) and the ratings joined to them by document and system.
    """
    rated_by_item = {(row.name("id"), row.name("model_id")): row for row in parts.get("ratings", ())}
    ids, rows, n_other = Ids("se"), [], 0
    for record in parts["texts"]:
        document, system = record.name("doc_id"), record.name("system_id")
        row = ids.row(document, slug(system)) | {
            "doc_id": document,
            "source": record.text("source"),
            "target": record.text("system_output"),
            "references": [record.text("reference")],
            **{f"human_{a}": round(record.number(field, low, high), 10) for a, (field, low, high) in aspects.items()},
        }
        if rated_by_item:
            if (ratings := rated_by_item.get((document, system))) is None:
                raise record.error(f"no ratings are there for document {document!r} by {system!r}.", "system_id")
            row["references"] = ratings.texts("references")
            several = [aspect for aspect in aspects if aspect != "overall"]
            for panel, field in panels.items():
                for aspect in several:
                    row[f"ann_{panel}_{aspect}"] = [rating.number(aspect, 1, 5) for rating in ratings.each(field)]
            n_other += any(abs(mean(row[f"ann_expert_{a}"]) - row[f"human_{a}"]) > _ROUNDING for a in several)
        rows.append(row)
    notes = [] if rated_by_item else ["Only the texts were given: labels are there, individual ratings are not."]
    if n_other:
        notes.append(f"{n_other} items have a label that is not the mean of their expert ratings.")
    return Converted(rows, tuple(notes))


def newsroom(parts: Parts, aspects: Rated) -> Converted:
    """Newsroom: 60 articles × 7 systems, three crowd ratings of 1 to 5 an aspect, one rating a row (``ratings``, CSV).

    The raters are not named.
    """
    ids, rows = Ids("nr"), []
    texts = {"title": "ArticleTitle", "source": "ArticleText", "target": "SystemSummary"}
    same = (texts["source"], texts["target"])
    for records in grouped(parts["ratings"], ("ArticleID", "System"), same, "article and system").values():
        article = records[0].name("ArticleID")
        ratings = {a: [row.number(field, low, high) for row in records] for a, (field, low, high) in aspects.items()}
        row = ids.row(article, slug(records[0].name("System"))) | {"doc_id": article}
        row |= {column: _without_marks(records[0].text(field)) for column, field in texts.items()}
        rows.append(row | rated(ratings))
    return Converted(rows)


def _without_marks(text: str) -> str:
    """The file is encoded for a web page: entities back to characters, paragraph marks to line breaks."""
    return _PARAGRAPH.sub("\n", html.unescape(text)).strip()


def qags(parts: Parts, aspects: Rated, *, prefix: str, system: str) -> Converted:
    """QAGS: whether summaries say only what their article says; three workers vote on each sentence (``votes``, JSONL).

    The label is the share of sentences whose majority says yes (XSUM has one sentence a summary, so 0 or 1).  A
    worker's rating of a summary is the share of its sentences that this worker supports, where the same workers voted
    on all.  `system` is from the paper, the file does not name it.
    """
    ids, rows = Ids(prefix), []
    for record in parts["votes"]:
        sentences = record.each("summary_sentences")
        ballots = [{vote.name("worker_id"): _vote(vote) for vote in each.each("responses")} for each in sentences]
        row = ids.row(str(record.row)) | {
            "system_id": system,
            "source": record.text("article"),
            "target": " ".join(sentence.text("sentence") for sentence in sentences),
            "human_consistency": mean([int(2 * sum(ballot.values()) > len(ballot)) for ballot in ballots]),
        }
        workers = list(ballots[0])
        if all(ballot.keys() == ballots[0].keys() for ballot in ballots):
            row["annotators"] = [f"W{worker}" for worker in workers]
            row["ann_consistency"] = [mean([ballot[worker] for ballot in ballots]) for worker in workers]
        rows.append(row)
    n_mixed = sum("ann_consistency" not in row for row in rows)
    notes = [
        f"The system ({system}) is named by the paper, not by the file.",
        "Labels are majorities of votes, ratings a worker's own votes: the mean of ratings may differ from the label.",
    ]
    if n_mixed:
        notes.append(f"{n_mixed} summaries have other workers from sentence to sentence: no individual ratings there.")
    return Converted(rows, tuple(notes))


def _vote(response: Fields) -> int:
    answer = response.text("response").lower()
    if answer not in _VOTES:
        raise response.wrong("response", "yes or no", answer)
    return _VOTES[answer]


def data_to_text(parts: Parts, aspects: Rated, *, prefix: str, dataset: str, metrics: list[str]) -> Converted:
    """SFRES and SFHOT: sentences about restaurants and hotels, each label the median of three crowd ratings of 1 to 6.

    UniEval's release (``texts``, JSON) has the texts with one reference each; the authors' own table of all three sets
    (``metrics``, CSV) names the systems and stores 23 metric scores.  The two are joined by meaning representation,
    text and labels; where a text occurs several times with the same labels, in the order of the files.
    """
    scored_by_text: dict[tuple[object, ...], deque[Fields]] = defaultdict(deque)
    for scored in parts.get("metrics", ()):
        if scored.text("dataset") == dataset:
            labels = tuple(scored.number(aspect, low, high) for aspect, (_, low, high) in aspects.items())
            scored_by_text[_squeezed(scored.text("mr")), _squeezed(scored.text("sys_ref")), labels].append(scored)
    ids, rows, n_unknown = Ids(prefix), [], 0
    for record in parts["texts"]:
        source, target = record.text("source"), record.text("system_output")
        labels = tuple(record.number(*field) for field in aspects.values())
        same = scored_by_text.get((_squeezed(source), _squeezed(target), labels))
        n_unknown += not same
        row = ids.row(source, slug(same[0].name("system")) if same else None)
        row |= {"source": source, "target": target, "references": [record.text("reference")]}
        row |= {f"human_{aspect}": label for aspect, label in zip(aspects, labels, strict=True)}
        if same:
            scored = same.popleft()
            row |= {f"metric_{name.lower().replace('.', '_')}": scored.number_or_none(name) for name in metrics}
        rows.append(row)
    notes = ["Labels are medians; the ratings behind them are not in these files."]
    if not scored_by_text:
        notes.append("Only the texts were given: systems are not named and no metric scores are there.")
    elif n_unknown:
        notes.append(f"{n_unknown} of {len(rows)} texts are not in the table of systems and metrics: left empty there.")
    return Converted(rows, tuple(notes))


def _squeezed(text: str) -> str:
    """Letters and digits only, in lower case: the two files space and capitalise differently."""
    return "".join(character for character in text.lower() if character.isalnum())


def usr(parts: Parts, aspects: Rated, *, prefix: str) -> Converted:
    """USR (Topical-Chat, Persona-Chat; ``dialogues``, JSON): three raters of responses, six aspects on three scales."""
    ids, rows = Ids(prefix), []
    for dialogue in parts["dialogues"]:
        fact = dialogue.text("fact")
        shared = {"source": dialogue.text("context"), "context": "" if fact == _NO_FACT else fact}
        annotators = [ids.rater(name) for name in dialogue.texts("annotators")]
        for response in dialogue.each("responses"):
            ratings = {aspect: response.numbers(*field) for aspect, field in aspects.items()}
            for aspect, values in ratings.items():
                if len(values) != len(annotators):
                    message = f"{len(values)} ratings came where 'annotators' names {len(annotators)} raters."
                    raise response.error(message, aspects[aspect][0])
            row = ids.row(str(dialogue.row), slug(response.name("model")))
            rows.append(row | shared | {"target": response.text("response")} | rated(ratings, annotators))
    return Converted(rows)


def webnlg(parts: Parts, aspects: Rated, *, metrics: list[str]) -> Converted:
    """WebNLG 2017: 223 sets of triples × 10 teams, crowd ratings of 1 to 3, one rating a row (``ratings``, CSV).

    The team ``webnlg`` is the gold text itself: it is the reference of the others, and the metric scores stored for it
    (always 1) stand for no measurement, so they are left out.
    """
    groups = grouped(parts["ratings"], ("mr", "team"), ("text",), "data and team")
    gold = {data: records[0].text("text") for (data, team), records in groups.items() if team == _WEBNLG_GOLD}
    ids, rows = Ids("wn", raters="W"), []
    for (data, team), records in groups.items():
        first, is_gold = records[0], team == _WEBNLG_GOLD
        text = first.text("text")
        row = ids.row(data, slug(team)) | {
            "source": re.sub(r"\s*<br>\s*", "\n", data),
            "target": "" if text == "NA" else text,
            "category": first.text("category"),
            "seen": first.text("type"),
            "system_type": first.text("systemtype"),
        }
        ratings = {aspect: [rating.number_or_none(*field) for rating in records] for aspect, field in aspects.items()}
        row |= rated(ratings, [ids.rater(rating.name("X_worker_id")) for rating in records])
        row |= {f"metric_{name}": None if is_gold else first.number_or_none(name) for name in metrics}
        if data in gold and not is_gold:
            row["references"] = [gold[data]]
        rows.append(row)
    n_empty = sum(not row["target"] for row in rows)
    notes = [
        f"The team {_WEBNLG_GOLD!r} is the gold text: leave it out when testing metrics that compare with references."
    ]
    if n_empty:
        notes.append(f"{n_empty} texts are empty in the file; judges leave them unscored.")
    return Converted(rows, tuple(notes))


def asset(parts: Parts, aspects: Rated) -> Converted:
    """ASSET: 100 simplified sentences, sliders from 0 to 100, one rating a row (``ratings``, CSV).

    Raters come in the order of their numbers.
    """
    for rating in parts["ratings"]:
        if (aspect := rating.text("aspect")) not in aspects:
            raise rating.wrong("aspect", f"one of {', '.join(aspects)}", aspect)
    sentences = grouped(parts["ratings"], ("original_sentence_id",), ("original", "simplification"), "sentence id")
    ids = Ids("as")
    rows = [_asset_row(sentence, records, aspects, ids) for (sentence,), records in sentences.items()]
    note = "The systems are not named, and the references of the corpus are not in this file."
    return Converted(rows, (note,))


def _asset_row(sentence: str, records: list[Fields], aspects: Rated, ids: Ids) -> Row:
    texts = {"source": records[0].text("original"), "target": records[0].text("simplification")}
    row = ids.row(sentence) | {"sentence_id": sentence} | texts
    for aspect, field in aspects.items():
        ratings = [rating for rating in records if rating.text("aspect") == aspect]
        if not ratings:
            raise records[0].error(f"the sentence has no rating of {aspect}.", "aspect")
        ratings.sort(key=lambda rating: rating.number("worker_id"))
        values = [rating.number(*field) for rating in ratings]
        row[f"human_{aspect}"] = mean(values)
        row[f"annotators_{aspect}"] = [f"W{rating.number('worker_id')}" for rating in ratings]
        row[f"ann_{aspect}"] = values
    return row


CONVERTERS: Mapping[str, Callable[..., Converted]] = {
    convert.__name__: convert for convert in (summeval, newsroom, qags, data_to_text, usr, webnlg, asset)
}
"""By the name that ``catalogue.yaml`` gives."""
