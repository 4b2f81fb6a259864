"""The finished sample project: how it is made, and the recorded replies that replay a calibration.

| module | does |
| --- | --- |
| `demo_calibration` | the golden set of the demo, its calibration, and the session that replays it |
| `recorded_session` | expands the hand-kept ratings and criteria of sample_data/recorded into a session |
| `build` | builds the demo project with the calls that the screens make; sample_data/make_demo.py runs it |

`core.projects.demo` brings the finished project into a store, restores it, and starts the replay.
"""
