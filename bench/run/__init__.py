"""The task `bench`: its plan, the Harbor child, progress and the result.

`command.py` is what the task calls; `parent.py` owns the child process, signals and cleaning; `child.py`
(`python -m bench.run`) runs the Harbor job through Harbor's API and writes events; `progress.py` shows them.
"""
