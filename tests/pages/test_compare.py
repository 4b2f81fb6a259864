"""The Compare screen against a real store: the table, its words, every section, and the empty states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

import core
from core import projects
from core.projects.project_judges import MetricsRequest
from core.records import JudgeScores, Rating
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import HOSTILE, button, choose, grids, harmless, open_screen, press, texts

SCREEN = "6_compare"


@pytest.fixture
def shelf(store: Store, settings: Settings, request: pytest.FixtureRequest) -> Place:
    """A golden set of two aspects, rated by as many people as the test's parameter says."""
    rng, raters = np.random.default_rng(3), getattr(request, "param", 0)
    labels = rng.integers(1, 6, 80).astype(float)
    given = np.clip(np.rint(labels + rng.normal(0, 1.0, (raters, labels.size))), 1, 5)
    ratings = tuple(Rating(f"i{k}", f"r{rater + 1}", "coherence", value) for (rater, k), value in np.ndenumerate(given))
    golden = golden_of(
        *(20, 4),
        name="summeval sample",
        labels=labels,
        aspects=("coherence", "fluency"),
        text=lambda k: f"Text {k} <b>bold</b>",
        ratings=ratings,
    )
    place = Place(store, settings, golden)
    place.noise = rng
    return place


def judges_in(screen: AppTest) -> Any:
    """The table without the bar."""
    table = grids(screen)[0]
    return table[~table["judge"].str.startswith("plain regression on")]


def look_at(screen: AppTest, view: str) -> AppTest:
    """Opens a view of one judge."""
    return choose(choose(screen, "Section", "errors"), "Look at", view)


def headline(screen: AppTest) -> str:
    return screen.header[0].value.replace("\\", "")


def test_the_table_names_its_measure_and_holds_scipys_numbers(shelf: Place) -> None:
    shelf.add_judge("good", 0.6)
    shelf.add_judge("poor", 3.0, unread=8)
    screen = open_screen(SCREEN, **shelf.ids)
    choose(screen, "Level", "dataset")
    assert "plain regression on 64 labels" in set(grids(screen)[0]["judge"])
    table = judges_in(screen)
    assert list(table["judge"]) == ["good", "poor"]
    good = shelf.store.judges.all(shelf.project_id)[0].judge.values[:72]
    assert table["Spearman, dataset"].iloc[0] == pytest.approx(spearmanr(good, shelf.labels[:72]).statistic)
    assert list(table["no score"]) == [0, 8]
    assert table["compared with the best judge"].iloc[1].startswith("worse, p")
    assert headline(screen).startswith("good agrees best")
    page_text = texts(screen)
    assert "72 of 80 labelled items; 8 left out because at least one judge hasn't scored them." in page_text
    assert "poor: 8 no verdict" in page_text
    (pair,) = next(frame for frame in grids(screen) if "minus" in frame).itertuples(index=False)
    assert pair[:2] == ("good", "poor") and pair.significant == "better"
    assert "compared with a rater" not in table, "nobody's single ratings are known"
    assert "the judge can't be compared with raters" in texts(choose(screen, "Section", "raters"))


def test_the_link_decides_and_a_choice_changes_it(shelf: Place) -> None:
    shelf.add_judge("one", 1.0)
    shelf.add_judge("other", 1.0, aspect="fluency")
    screen = open_screen(SCREEN, **(shelf.ids | {"aspect": "fluency"}))
    assert list(judges_in(screen)["judge"]) == ["other"]
    choose(screen, "Aspect", "coherence")
    assert screen.query_params["aspect"] == "coherence"
    assert list(judges_in(screen)["judge"]) == ["one"]


def test_no_judge_says_what_to_do(shelf: Place) -> None:
    screen = open_screen(SCREEN, **shelf.ids)
    assert "No judge has scored coherence in summeval sample yet" in texts(screen)
    assert [way.label for way in screen.segmented_control] == ["Add judges"]


@pytest.mark.parametrize("shelf", [0, 3], indirect=True)
def test_a_constant_judge_alone_stands_below_the_bar_in_every_section(shelf: Place) -> None:
    values = np.full(80, 3.0)
    projects.add_judge(
        shelf.store, shelf.project_id, shelf.golden_id, JudgeScores("three", "imported", "coherence", values)
    )
    screen = open_screen(SCREEN, **shelf.ids)
    table = grids(screen)[0]
    assert table["judge"].iloc[1] == "three"
    assert table["Spearman, sample"].notna().tolist() == [True, False]
    for section in ("raters", "systems"):
        choose(screen, "Section", section)
        assert not screen.header, "the headline of the ranking stands on the ranking alone"
    for view in ("fails", "items", "curve"):
        look_at(screen, view)


@pytest.mark.parametrize("shelf", [3], indirect=True, ids=["three raters"])
def test_judges_stand_beside_a_person_against_the_same_targets(shelf: Place) -> None:
    shelf.add_judge("good", 0.2)
    alone = grids(open_screen(SCREEN, **shelf.ids))[0].set_index("judge")["compared with a rater"]
    assert alone["good"].startswith("better, +")
    shelf.add_judge("poor", 6.0)
    shelf.add_judge("metric", 0.2, on_scale=False)
    screen = open_screen(SCREEN, **shelf.ids)
    board = grids(screen)[0].set_index("judge")["compared with a rater"]
    assert board["good"].startswith("as good, +")  # one of three: the interval is wider
    assert board["poor"].startswith("worse, −")
    people = grids(choose(screen, "Section", "raters"))[0].set_index("judge")
    assert "corrected for 3 judges" in texts(screen)
    golden = shelf.store.goldens.load(shelf.golden_id)
    listed = {judge.name: judge.judge.values for judge in shelf.store.judges.all(shelf.project_id)}
    scores = dict(zip(golden.item_ids, listed["good"].tolist(), strict=True))
    own = core.compare_with_raters(golden, scores, "coherence", core.MeasureSettings(level="sample"))
    assert people.loc["good", "the judge"] == pytest.approx(own.judge.value)
    assert people.loc["good", "judge minus rater"].startswith(f"{own.difference:+.2f} [")
    assert (people.loc["good", "ω"], people.loc["good", "annotator test"]) == (1.0, "passed")
    assert np.isnan(people.loc["metric", "ω"])  # a scale of its own
    assert "Alternative Annotator Test: passed" in texts(screen)
    assert list(grids(screen)[1]["rater"]) == ["r1", "r2", "r3"]


def test_an_item_opens_with_its_text_and_the_reply_as_letters(shelf: Place) -> None:
    shelf.add_judge("good", 0.5)
    screen = look_at(open_screen(SCREEN, **shelf.ids), "items")
    assert "To read an item, select its row" in texts(screen)
    listed = grids(screen)[0]
    assert listed["gap (SD)"].abs().is_monotonic_decreasing
    screen.query_params["item"] = "i7"
    screen.run()
    assert "Text 7 <b>bold</b>" in [text.value for text in screen.text]
    assert "Rating: 7 <script>" in [text.value for text in screen.text]
    assert f"raters {shelf.labels[7]:.2f}" in texts(screen)


def test_a_scale_of_its_own_is_mapped(shelf: Place) -> None:
    shelf.add_judge("metric", 0.5, kind="metric", on_scale=False)
    screen = look_at(open_screen(SCREEN, **shelf.ids), "curve")
    before, after = screen.metric[0].value, screen.metric[1].value
    assert before == "—"
    assert float(after.split()[0]) < 1.0
    assert "cross-fitted over sources" in texts(screen)


def test_a_judge_is_removed(shelf: Place) -> None:
    shelf.add_judge("first", 1.0)
    gone = shelf.add_judge("second", 1.0)
    screen = press(open_screen(SCREEN, **shelf.ids), "Add or remove judges")
    screen.selectbox(key="form_compare_change").set_value(gone).run()
    assert button(screen, "Remove").disabled
    screen.checkbox(key=f"form_compare_sure_{gone}").check().run()
    press(screen, "Remove")
    assert [view.name for view in shelf.store.judges.all(shelf.project_id)] == ["first"]


def test_nothing_changed_computes_nothing_again(shelf: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.add_judge("a", 1.0)
    shelf.add_judge("b", 2.0)
    screen = open_screen(SCREEN, **shelf.ids)

    def refused(*given: Any, **named: Any) -> None:
        raise AssertionError("computed or drawn a second time")

    monkeypatch.setattr("pages.compare.choices.compare_table", refused)
    monkeypatch.setattr("pages.compare.leaderboard.leaderboard_figure", refused)
    screen.run()


def test_hostile_names_stay_letters(shelf: Place) -> None:
    shelf.add_judge(HOSTILE, 0.5)
    shelf.add_judge("b", 2.0)
    screen = open_screen(SCREEN, **shelf.ids)
    harmless(screen)
    harmless(choose(screen, "Section", "raters"))
    for view in ("items", "curve"):
        harmless(look_at(screen, view))
    harmless(press(screen, "Add or remove judges"))


def test_a_link_holds_statistic_level_and_section(shelf: Place) -> None:
    shelf.add_judge("good", 0.6)
    shelf.add_judge("poor", 3.0)
    asked = {"statistic": "pearson", "level": "system", "section": "errors", "what": "curve"}
    screen = open_screen(SCREEN, **(shelf.ids | asked))
    assert "After mapping" in [metric.label for metric in screen.metric]
    assert {name: screen.query_params[name] for name in asked} == asked
    assert "Pearson r, system level, " in texts(choose(screen, "Section", "ranking"))
    choose(screen, "Statistic", "spearman")
    assert "statistic" not in screen.query_params  # the usual one needs no word in the link
    screen = open_screen(SCREEN, **(shelf.ids | {"statistic": "<b>", "level": "galaxy", "section": "?"}))
    assert "Spearman rho, " in texts(screen)


def test_who_costs_the_others_their_items_is_hidden_until_it_is_put_in(shelf: Place) -> None:
    """A pilot of 10 of the 80 items, and a judge that has seen 60 labels."""
    shelf.add_judge("good", 0.6)
    pilot = shelf.add_judge("pilot", 0.6, unread=70)
    fitted = shelf.add_judge("calibrated one", 0.2, kind="calibrated", seen=tuple(range(60)))
    screen = open_screen(SCREEN, **shelf.ids)
    assert list(judges_in(screen)["judge"]) == ["good"]
    assert "80 of 80 labelled items" in texts(screen)
    assert "Hidden because they share too few items with the other judges: “pilot”, “calibrated one”." in texts(screen)
    screen.multiselect[0].set_value([pilot]).run()
    assert set(judges_in(screen)["judge"]) == {"good", "calibrated one"}
    assert "20 of 80 labelled items" in texts(screen)
    screen.multiselect[0].set_value([fitted]).run()
    assert "items with the other judges: “calibrated one”." in texts(screen)
    screen.multiselect[0].set_value([]).run()
    assert "Hidden" not in texts(screen)
    assert headline(screen) == "There is nothing to compare yet."
    assert grids(screen)[0]["why undefined"].iloc[0] == "the judges have no labelled items in common"


def test_calibrate_points_to_compare_for_a_run_of_metrics(shelf: Place) -> None:
    run_id = shelf.add_run("queued", MetricsRequest(shelf.project_id, shelf.golden_id, "coherence", ("overlap",)))
    page_text = texts(open_screen("3_calibrate", run=run_id))
    assert "open Compare" in page_text


def test_nothing_is_claimed_of_a_judge_that_is_as_good_everywhere(shelf: Place) -> None:
    shelf.add_judge("good", 0.6)
    screen = look_at(open_screen(SCREEN, **shelf.ids), "fails")
    page_text = texts(screen)
    assert "errs more" not in page_text
    assert "Holm" in page_text
    parts = grids(screen)[0]
    assert {"subgroup", "agreement", "interval", "excess over other subgroups", "p"} <= set(parts.columns)
    assert np.isfinite(parts["agreement"].astype(float)).any()
