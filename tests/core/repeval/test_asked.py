"""A judge's own question read for RepEval: its score and the states of a probe come out of one pass."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.api.system_means import calibrated_on
from core.errors import ConsentError, JudgeError, UsageError
from core.export.judge_reading import open_file
from core.export.judge_writing import sealed
from core.judging.local import LocalJudge, asked_rows
from core.judging.registry import NAMED, make_judge
from core.judging.styles import Sampling
from core.providers.one_pass import NextTokens
from core.records import AspectLabels, Criteria, GoldenSet, Item, Scale, Task
from core.repeval import Extraction, RepEvalScorer, extract
from core.repeval.model import ModelSpec
from core.repeval.states import Grid
from core.settings import Settings
from tests.core.local_models import save_model

SCALE = Scale(1, 5, 1.0)
TASK = Task("coherence", "single", SCALE)
CRITERIA = Criteria("Be brief.\nNothing may be invented.", "coherence")


def golden(n_sources: int = 30) -> GoldenSet:
    items = tuple(
        Item(
            f"i{k}", f"Report {k * k % 97}.\nIt says so. " * (1 + k % 3), source_id=f"s{k // 4}", system_id=f"m{k % 4}"
        )
        for k in range(4 * n_sources)
    )
    labels = tuple(float(1 + k * 7 % 5) for k in range(len(items)))
    return GoldenSet("made", "single", items, {"coherence": AspectLabels("coherence", SCALE, labels)})


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))


KINDS = (("plain", False), ("chat", True))


@pytest.fixture(scope="module", params=[chat for _, chat in KINDS], ids=[name for name, _ in KINDS])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return save_model(tmp_path_factory.mktemp("asked"), chat=request.param, words=True)


PLAIN, CHAT = (pytest.mark.parametrize("folder", [pytest.param(chat, id=name)], indirect=True) for name, chat in KINDS)


def calibrated(out: Path) -> Path:
    core.calibrate(golden(), "coherence", preset="quick", rounds=0, resamples=0, ensemble=1).save(out)
    return out / "judge.yaml"


@pytest.fixture(scope="module")
def judge_file(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """A calibrated judge, whose criteria the model in `folder` is asked with."""
    path = calibrated(tmp_path_factory.mktemp("judge"))
    card = open_file(path, "judge").card
    card = {**card, "judge": {**local(folder).as_state(), "notice": card["judge"]["notice"]}}
    path.write_text(json.dumps(sealed(card)), encoding="utf-8")
    return path


def local(folder: Path, **how: Any) -> LocalJudge:
    judge = make_judge(f"hf:{folder}", Settings(), gate=NAMED, **how)
    assert isinstance(judge, LocalJudge)
    return judge


@pytest.mark.parametrize("scale", [SCALE, Scale(1, 10, 1.0)], ids=["one-token", "ten-in-two"])
def test_states_out_of_the_judges_pass_equal_those_read_apart(folder: Path, scale: Scale) -> None:
    items, task = golden(4).items, Task("coherence", "single", scale)
    apart = local(folder).score(task, items, [CRITERIA]).values
    judge, kept = local(folder), dict[tuple[int, ...], Any]()
    grid = Grid((0, 2, 4), ("-2", "-1"))
    judge.local.hand_states(grid, lambda ids, states: kept.update({tuple(ids): states}))
    np.testing.assert_allclose(judge.score(task, items, [CRITERIA]).values, apart, atol=1e-4)

    question = judge.question(task, CRITERIA)
    rows = asked_rows(question, judge.local.ready.tokenizer, items)
    extraction = Extraction(tokens=grid.tokens, layers=grid.layers, question=question)
    read = extract(GoldenSet("made", "single", items, {}), ModelSpec(str(folder)), extraction, ask=asked_rows)
    assert set(kept) == {tuple(row) for row in rows}
    beside = np.stack([kept[tuple(row)] for row in rows])
    np.testing.assert_allclose(read.values.astype(np.float32), beside, rtol=2e-3, atol=2e-3)


@PLAIN
def test_one_pass_is_enough(folder: Path, judge_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prompt goes through the model once; the judge's scores are those of `score`, the probe's its own."""
    from core.repeval import extraction

    passes = list[int]()
    watched = NextTokens._watched

    def counted(self: NextTokens, rows: Any, *more: Any) -> Any:
        passes.append(len(rows))
        return watched(self, rows, *more)

    monkeypatch.setattr(NextTokens, "_watched", counted)
    monkeypatch.setattr(extraction, "load_model", lambda *_: pytest.fail("the texts were read a second time"))
    made, out = golden(), tmp_path / "probe"
    fitted = core.fit_repeval(
        made, "coherence", model=str(folder), judge_file=judge_file, statistic="pearson", level="dataset", out=out
    )
    assert sum(passes) == len({item.target for item in made.items})
    prompted = fitted.prompted
    assert prompted is not None
    judge = core.load_judge(judge_file, judge=f"hf:{folder}")
    np.testing.assert_allclose(prompted.scores, judge.score(made.items).values, atol=1e-4)
    test = list(fitted.result.parts.test)
    met = {made.items[k].source_id for k in calibrated_on(made, judge_file)}
    assert met
    assert {item.source_id for item in made.items} - met == {made.items[k].source_id for k in test}
    assert prompted.n_criteria == 1
    labels = np.asarray(made.labels("coherence"))[test]
    by_hand = [np.corrcoef(scores[test], labels)[0, 1] for scores in (fitted.result.scores, prompted.scores)]
    assert prompted.alignment.value == pytest.approx(by_hand[1])
    assert prompted.difference.value == pytest.approx(by_hand[0] - by_hand[1])
    assert prompted.difference.interval is not None
    body = json.loads((out / "summary.json").read_text("utf-8"))
    assert body["prompted"]["alignment"]["value"] == pytest.approx(by_hand[1])
    line = json.loads((out / "scores.jsonl").read_text("utf-8").splitlines()[0])
    assert line["prompted"] == pytest.approx(prompted.scores[0])


@CHAT
def test_the_file_asks_the_same_question_of_other_items(folder: Path, judge_file: Path, tmp_path: Path) -> None:
    made = golden()
    fitted = core.fit_repeval(
        made, "coherence", model=str(folder), judge_file=judge_file, bootstrap=0, tokens=["-1"], out=tmp_path
    )
    card = open_file(tmp_path / "repeval.yaml", "repeval").card
    assert RepEvalScorer.from_json(card["scorer"]).as_json() == card["scorer"]
    again = core.load_judge(tmp_path / "repeval.yaml", judge=f"hf:{folder}")
    test = list(fitted.result.parts.test)  # of the others the run has scores by fits without them
    values = np.array(again.score(made.items).values)
    np.testing.assert_allclose(values[test], fitted.result.scores[test], atol=5e-3)
    with pytest.raises(ConsentError):
        core.load_judge(tmp_path / "repeval.yaml").score(made.items)
    question = card["scorer"]["question"]
    turned = question["task"] | {"scale": [5, 1, 1]}
    for damage in ({"task": {}}, {"task": question["task"] | {"kind": "pair"}}, {"task": turned}, {"needs": ["x"]}):
        with pytest.raises(JudgeError, match="damaged"):
            RepEvalScorer.from_json(card["scorer"] | {"question": question | damage})
    for damage, words in (({"prompt": "draft.v1"}, "no scoring prompt"), ({"persona": "x"}, "There is no persona 'x'")):
        forged = {**card, "scorer": card["scorer"] | {"question": question | damage}}
        (tmp_path / "forged.yaml").write_text(json.dumps(sealed(forged)), encoding="utf-8")
        with pytest.raises(JudgeError, match=words):
            core.load_judge(tmp_path / "forged.yaml", judge=f"hf:{folder}").score(made.items)


@PLAIN
def test_what_the_judge_lacks_counts_as_unread_and_its_own_items_test_nothing(
    folder: Path, judge_file: Path, tmp_path: Path
) -> None:
    made = golden()
    card = open_file(judge_file, "judge").card
    needy = tmp_path / "needy.yaml"
    task, texts = card["task"] | {"needs": ["target", "source"]}, {"calibration": "", "held_out": ""}
    needy.write_text(json.dumps(sealed({**card, "task": task, "texts": texts})), encoding="utf-8")
    sourced = replace(
        made, items=tuple(replace(item, source="A source.") for item in made.items[:-3]) + made.items[-3:]
    )
    prompted = core.fit_repeval(
        sourced, "coherence", model=str(folder), judge_file=needy, bootstrap=0, statistic="pearson", level="dataset"
    ).prompted
    assert prompted is not None
    assert np.isnan(prompted.scores[-3:]).all()
    assert prompted.n_unread == 3

    met = {made.items[k].source_id for k in calibrated_on(made, judge_file)}
    values = tuple(
        label if item.source_id in met else None
        for item, label in zip(made.items, made.aspects["coherence"].values, strict=True)
    )
    only = replace(made, aspects={"coherence": replace(made.aspects["coherence"], values=values)})
    with pytest.raises(UsageError, match="none is left to test it on"):
        core.fit_repeval(only, "coherence", model=str(folder), judge_file=judge_file, bootstrap=0)


@CHAT
def test_only_a_weighed_judge_in_the_process_is_read(folder: Path, judge_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConsentError):
        core.fit_repeval(golden(), "coherence", judge_file=judge_file, bootstrap=0)
    with pytest.raises(UsageError, match="its judge is offline"):
        core.fit_repeval(golden(), "coherence", judge_file=calibrated(tmp_path), bootstrap=0)
    written = local(folder, sampling=Sampling("rate_explain"))
    with pytest.raises(UsageError, match="weighted"):
        written.question(TASK, CRITERIA)
    with pytest.raises(UsageError, match="judge_file or train_on"):
        core.fit_repeval(golden(), "coherence", judge_file=judge_file, train_on=golden(20))
    with pytest.raises(UsageError, match="read whole"):
        core.fit_repeval(
            golden(), "coherence", judge_file=judge_file, model=str(folder), template="{hypothesis}", bootstrap=0
        )
