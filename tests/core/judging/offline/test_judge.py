"""The offline judge as a `Judge`: scores, drafts, refinements, explanations, state."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.errors import JudgeError
from core.judging.judge_protocol import DraftRequest, Exemplar
from core.judging.offline.features import feature_matrix, prior, read
from core.judging.offline.judge import OfflineJudge
from core.records import Criteria, Item, Provenance, Scale, Scored, Task

SOURCE = (
    "The old mill in Harwick burned down on Friday . Nobody was hurt , said fire chief Ana Duarte . "
    "About 40 people watched the fire . The mill was built in 1871 and had stood empty for years ."
)
GOOD = "The old mill in Harwick burned down on Friday . Nobody was hurt , said fire chief Ana Duarte ."
TASK = Task("consistency", "source_target", Scale(1, 5))
ONLY = "Judge the consistency of the text by these points only."
FAITHFUL = "Reward texts that say only what the source says."
TEXTS = (
    GOOD,
    "The mill burned down on Friday .",
    "Mayor Bob Stone said 90 people died in the flood of Tonbridge .",
    "The mill the mill the mill burned burned down down on and",
    "The mill was built in 1871 . It had stood empty for years .",
    "Nobody was hurt when an empty mill burned in Harwick , which about 40 people watched .",
    "fire",
    "Chief Ana Duarte built the mill in 1871 . Nobody was empty .",
    "A house in Harwick was sold on Monday for 2 million dollars .",
    "About 40 people watched the fire . About 40 people watched the fire .",
)


def items(texts: tuple[str, ...] = TEXTS) -> list[Item]:
    return [Item(f"i{n}", text, source_id="s", source=SOURCE) for n, text in enumerate(texts)]


def criteria(text: str, aspect: str = "consistency") -> Criteria:
    return Criteria(text, aspect)


@pytest.fixture(scope="module")
def judge() -> OfflineJudge:
    return OfflineJudge().prepare(TASK, items())


def test_scores_lie_inside_the_scale_unrounded_and_count_their_calls(judge: OfflineJudge) -> None:
    seen: list[tuple[int, int]] = []
    matrix = judge.score(
        TASK, items(), [criteria(""), criteria("Reward texts that are short.")], on_progress=lambda *at: seen.append(at)
    )
    assert matrix.values.shape == (2, len(TEXTS))
    assert ((matrix.values > 1) & (matrix.values < 5)).all()
    assert len(np.unique(matrix.values[0])) == len(TEXTS)
    assert matrix.calls == 2 * len(TEXTS)
    assert seen[-1] == (matrix.calls, matrix.calls)


@pytest.mark.parametrize(
    ("text", "better", "worse"),
    [
        ("Reward texts that are short.", 6, 0),
        ("Reward texts that are long and full.", 0, 6),
        ("Penalise texts that repeat themselves.", 0, 3),
        ("Reward texts that say only what the source says.", 0, 2),
        ("Penalise texts that break off in mid-sentence.", 0, 3),
        ("Reward texts that cover the main points of the source.", 0, 8),
        ("Penalise texts that stay close to the wording of the source.", 2, 0),
    ],
)
def test_the_wording_decides_which_text_wins(judge: OfflineJudge, text: str, better: int, worse: int) -> None:
    scores = judge.score(TASK, items(), [criteria(f"{ONLY} {text}")]).values[0]
    assert scores[better] > scores[worse]


def test_a_score_does_not_depend_on_the_batch(judge: OfflineJudge) -> None:
    together = judge.score(TASK, items(), [criteria("Penalise texts that repeat themselves.")]).values[0]
    alone = [
        judge.score(TASK, [item], [criteria("Penalise texts that repeat themselves.")]).values[0, 0] for item in items()
    ]
    assert together.tolist() == alone  # to the last bit: batches of any size give the same ranks


def test_state_comes_back_exactly(judge: OfflineJudge) -> None:
    state = json.loads(json.dumps(judge.as_state()))
    again = OfflineJudge.from_state(state)
    assert (
        again.score(TASK, items(), [criteria("")]).values == judge.score(TASK, items(), [criteria("")]).values
    ).all()
    with pytest.raises(JudgeError, match="openai"):
        OfflineJudge.from_state({"spec": "openai:x"})
    for broken in ({}, {"features": {}, "concepts": {}}, {**state["scaling"], "features": {"log_words": [0, 1]}}):
        with pytest.raises(JudgeError):
            OfflineJudge.from_state({"spec": "offline", "scaling": broken})


# ── drafting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def draft_request(labels: list[float], *, temperature: float = 0.0, seed: int = 1) -> DraftRequest:
    exemplars = tuple(Exemplar(item, label) for item, label in zip(items(), labels, strict=True))
    ids = tuple(e.item.item_id for e in exemplars)
    return DraftRequest(exemplars, temperature, 768, seed, Provenance("draft", item_ids=ids, size=len(ids)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_drafter_finds_a_planted_signal(judge: OfflineJudge, sign: float) -> None:
    """Labels are the number of words, or its opposite, under a name that lets expect neither."""
    task = Task("appeal", "source_target", Scale(1, 5))
    labels = [sign * len(text.split()) for text in TEXTS]
    drafts = judge.draft(task, [draft_request(labels, seed=seed) for seed in range(8)]).drafted
    texts = [drafted.text for drafted in drafts if isinstance(drafted, Criteria)]
    assert len(texts) == 8
    for text in texts:
        weights = {c.key: c.weight for c in read(text).clauses}
        assert weights.get("length", 0.0) * sign >= 0
        scores = judge.score(task, items(), [criteria(text, "appeal")]).values[0]
        if not read(text).whole:
            assert float(spearmanr(scores, labels).statistic) > 0.6, text
    if sign < 0:  # against what the name lets expect: some drafts must leave the aspect as a whole out
        assert any(not read(text).whole for text in texts)


def test_drafts_read_well_keep_their_provenance_and_differ_by_seed(judge: OfflineJudge) -> None:
    labels = [5.0, 4.0, 1.0, 1.0, 4.0, 5.0, 2.0, 2.0, 1.0, 3.0]
    requests = [draft_request(labels, temperature=1.0, seed=seed) for seed in range(12)]
    batch = judge.draft(TASK, requests)
    texts = [drafted.text for drafted in batch.drafted if isinstance(drafted, Criteria)]
    assert len(set(texts)) >= 8
    for text, request, drafted in zip(texts, requests, batch.drafted, strict=True):
        reading = read(text)
        assert text.startswith("Judge the consistency of the text")
        assert 2 <= len(reading.clauses) <= 6
        assert not reading.unread
        assert not re.search(r"\d", text)
        assert isinstance(drafted, Criteria)
        assert drafted.provenance == request.provenance
    assert judge.draft(TASK, requests) == batch


# ── refining ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refine_request(text: str, wrong: dict[int, tuple[float, float]], seed: int, temperature: float) -> DraftRequest:
    shown = tuple(Exemplar(items()[i], label, score) for i, (label, score) in wrong.items())
    return DraftRequest(shown, temperature, 768, seed, Provenance("refine"), criteria=criteria(text))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (f"{ONLY} Reward texts that are long and full.", {6: (5.0, 1.0), 5: (1.0, 5.0)}),
        (f"{ONLY} Reward texts that are short.", {0: (5.0, 2.0)}),
        ("Slightly penalise texts that repeat themselves.", {3: (1.0, 4.0)}),
    ],
)
def test_every_refinement_moves_the_misaligned_items_the_right_way(
    judge: OfflineJudge, text: str, wrong: dict[int, tuple[float, float]]
) -> None:
    requests = [refine_request(text, wrong, seed, temperature=1.0) for seed in range(10)]
    batch = judge.draft(TASK, requests)
    texts = [drafted.text for drafted in batch.drafted if isinstance(drafted, Criteria)]
    assert len(texts) == 10
    assert len(set(texts)) >= 3
    values = judge.scaling.concepts(feature_matrix(items(), "source_target"))

    def moved(new: str) -> float:
        """Raw (unsquashed, not normalised) change of the misaligned items towards their labels."""
        change = read(new).weights(prior(TASK)) - read(text).weights(prior(TASK))
        return sum(math.copysign(1, label - score) * float(change @ values[i]) for i, (label, score) in wrong.items())

    assert all(moved(new) > 0 for new in texts)


# ── explaining ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_explanations_carry_the_score_and_their_moves_add_up(judge: OfflineJudge) -> None:
    chosen = criteria(f"{FAITHFUL} Reward texts that are short. Reward purple prose.")
    scores = judge.score(TASK, items(), [chosen]).values[0]
    for verdict, score in zip(judge.score(TASK, items(), [chosen], explain=True).explained, scores, strict=True):
        assert isinstance(verdict, Scored)
        assert verdict.value == score
        moves = [float(m) for m in re.findall(r"^([+-]\d+\.\d\d)  ", verdict.explanation, re.MULTILINE)]
        # Each of at most 9 printed moves is rounded by at most .005; a rest below .005 is not printed.
        assert 3 + sum(moves) == pytest.approx(score, abs=0.05)


def test_other_kinds_of_items_are_scored_and_explained() -> None:
    data = Item("d", "The Old Inn is in Noma.", source="inform(name='old inn',area=noma,food=thai)")
    text = (
        "Reward texts that make use of the given facts. Reward texts that voice every piece of the data. "
        "Reward texts that are long and full."
    )
    for item, kind, seen in (
        (data, "data_text", "voice every piece of the data: "),
        (Item("s", "One fox ran."), "single", "are long and full: "),
    ):
        task = Task("quality", kind, Scale(0, 1))  # type: ignore[arg-type]
        verdict = OfflineJudge().score(task, [item], [criteria(text, "quality")], explain=True).explained[0]
        assert isinstance(verdict, Scored)
        assert 0 < verdict.value < 1
        assert seen in verdict.explanation
