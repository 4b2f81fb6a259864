"""Templates: fields put in once, mistakes told; batches by length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.records import Item
from core.repeval.states import template_text, templates
from core.repeval.states.model import token_batches
from core.repeval.states.prompts import item_fields, render


def test_fields_are_put_in_once_and_braces_in_texts_mean_nothing() -> None:
    item = Item("a", "says {source} and {criterion} and {0}", source="the {hypothesis}", context="c")
    text = render("{source}|{context}|{hypothesis}|{criterion}", item_fields(item, "fluent"))
    assert text == "the {hypothesis}|c|says {source} and {criterion} and {0}|fluent"


def test_templates_by_name_by_text_and_empty() -> None:
    assert template_text("") == "{hypothesis}"
    assert template_text("quality") == templates()["quality"]
    assert "{source}" in template_text("consistency")
    assert template_text("Rate: {hypothesis}") == "Rate: {hypothesis}"


@pytest.mark.parametrize(
    ("template", "says"),
    [("Rate this text.", "must hold .hypothesis."), ("{hypothesis} {refrence}", "unknown field .refrence.")],
)
def test_unusable_templates_are_refused(template: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        template_text(template)


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 120))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    assert all(len(batch) == 1 or len(batch) * top <= budget for batch, top in zip(batches, longest, strict=True))
