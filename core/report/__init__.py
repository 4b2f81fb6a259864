"""The report on a calibrated judge, all figures of the screens, and monitoring of newer texts.

::

    report_facts  the record of all that is known                 Report History CostLine reproduce
    measured      found from golden set and calibration           ReportedJudge judge_table gold_labels raters_of
    systems       systems: means, or strengths of pairs           by_system means_by_system strengths_of
    headline      the finding, what belongs next to it, limits    headline asides limits
    page          as one HTML page, and its appendix              html_page appendix_page
    plots         which of it goes into which figure              sides_plot judges_plot …
    rows          every figure as a row of CSV                    figures_csv
    monitoring    newer texts: scores, page and table             monitor
    figures       the figures of report and screens

Texts of people and models are hostile until escaped: `page`, `figures` and `rows` escape and shorten them.
"""
