"""The report on a calibrated judge, and the figures of all screens.

::

    report_facts  the record, and what is measured for it         Report ReportedJudge raters_of misaligned
    headline      the finding, what belongs next to it, limits    headline asides limits
    page          one HTML page, its appendix, figures as CSV     html_page appendix_page figures_csv
    figures       the figures of report and screens

Texts of people and models are hostile until escaped: `page` and `figures` escape and shorten them.
"""
