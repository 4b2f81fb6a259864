"""The report on a calibrated judge, and all figures of the screens.  Pure.

::

    facts                the record of all that is known          Report History CostLine reproduce
    measured             found from golden set and calibration    Judged judge_table by_system … gold_labels raters_of
    findings             the result in a sentence; its limits     headline limits
    page                 as one HTML page, and for a wiki         html_page markdown_page
    plots                its drawings as SVG                      sides_plot judges_plot …
    rows                 every figure as a row of CSV             figures_csv
    figures              the plotly figures of the screens

Texts of people and models are hostile until escaped: `page`, `plots` and `rows` escape and shorten them.
"""
