"""A judge at work on what systems write in use: means by day or version, alarms, and who has moved.

::

    monitor(MonitorRequest(traffic, judge_file, out)) -> Monitored

    periods   texts by day, week or version: means, corrected means, and what has moved since the baseline
    anchors   labelled texts scored again and again: has the judge itself moved?
    run       reads, scores what is new, and puts both together
    page      the page that `monitor` writes
"""
