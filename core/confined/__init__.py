"""Files of unknown origin are decoded in a process of their own, with little memory, little time and no secrets.

::

    asking.Reader ── starts once, asks often ──> serving.serve (clean environment, no keys) ── forks for each file ──>
    the job, under limits of memory, CPU and wall-clock time ── lines of JSON ──> the values that `Reader.ask` yields

A decoder that is led astray can only waste what it was allowed, and what it writes is read as JSON, which runs nothing.
"""
