"""Has an exported judge's alignment fallen on newer labels?

::

    recheck  recheck(judge, golden, aspect, …) -> Recheck      score the new golden set, compare with the file's figure
             recheck_scores(card, golden, aspect, scores, …)   the same on scores that are there already
             newer_items(card, golden, aspect) -> Newer        items whose texts the judge never met; the others counted
    outcome  Recheck: its decision in words, and how labels and scores are distributed now, beside before
    change   the difference between two independent alignments: interval, p, what n can tell, n needed

Importing this package imports none of them; `core.drift.outcome` brings no judge with it.
"""
