"""The report on a calibrated judge, and all figures of the screens.  Pure.

::

    facts                the record of all that is known          Report History CostLine reproduce
    measured             found from golden set and calibration    Judged judge_table by_system … gold_labels raters_of
    systems              systems: means, or strengths of pairs    by_system means_by_system strengths_of
    findings             the result in a sentence; its limits     headline limits
    page                 as one HTML page, and for a wiki         html_page markdown_page
    plots                what of it goes into which figure        sides_plot judges_plot …
    rows                 every figure as a row of CSV             figures_csv
    figures              the figures of report and screens

Texts of people and models are hostile until escaped: `page`, `figures` and `rows` escape and shorten them.
"""
