"""The report on a calibrated judge, and the figures of all screens.

::

    report_facts  the facts of a report as one record            Report ReportedJudge raters_of misaligned
    headline      the finding, notes next to it, and limits      headline headline_notes limits
    page          HTML report, appendix, and figures as CSV      html_page appendix_page figures_csv
    figures       charts of the report and the screens

Texts from users and models are untrusted: `page` and `figures` escape and shorten them.
"""
