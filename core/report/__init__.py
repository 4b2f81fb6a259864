"""The report on a calibrated judge, all figures of the screens, and monitoring of newer texts.

::

    report_facts  the record, and what is measured for it         Report ReportedJudge raters_of misaligned
    headline      the finding, what belongs next to it, limits    headline asides limits
    page          as one HTML page, and its appendix              html_page appendix_page
    rows          every figure as a row of CSV                    figures_csv
    monitoring    newer texts: scores, and a page                 monitor
    figures       the figures of report and screens

Texts of people and models are hostile until escaped: `page`, `figures` and `rows` escape and shorten them.
"""
