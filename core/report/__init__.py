"""The report on a calibrated judge, all figures of the screens, and monitoring of newer texts.

::

    report_facts  the record, and what is measured for it         Report ReportedJudge judge_table raters_of by_system
    headline      the finding, what belongs next to it, limits    headline asides limits
    page          as one HTML page, and its appendix              html_page appendix_page
    plots         which of it goes into which figure              sides_plot judges_plot …
    rows          every figure as a row of CSV                    figures_csv
    monitoring    newer texts: scores, page and table             monitor
    figures       the figures of report and screens

Texts of people and models are hostile until escaped: `page`, `figures` and `rows` escape and shorten them.
"""
