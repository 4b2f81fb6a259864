"""Judging styles side by side: one language model asked in several ways, each aligned with the people.

::

    records    what is asked for, what it will cost, what came of it   StylesRequest StylesEstimate StylesView
    grid       the items of each aspect, what criteria saw             StyleGrid Column
    estimate   calls, tokens and price before anything is asked        estimate_grid
    cells      one style on one aspect: asked, read, measured          ask_in_style measured
    run        cell by cell, as far as the budget reaches              run_grid
"""
