"""The finished sample project: how it is made, and the recorded replies that replay a calibration.

| module | does |
| --- | --- |
| `newsroom` | the golden set that the demo is about, its calibration, and the session that replays it |
| `recorded` | hand-kept ratings and criteria of sample_data/recorded → a session that answers a whole calibration |
| `build` | the demo project, by the same calls that the screens make; run by sample_data/make_demo.py |

`core.projects.demo` brings the finished project into a store, puts it back, and starts the replay.
"""
