"""A task's environment without Docker: bubblewrap over the host's own `/usr`.

`definition.refusals` and `probe.problem` are light enough for a plan; `environment.SandboxEnvironment` is what Harbor
loads. In between: `dockerfile` and `context` (what a task asks for), `layout` (what is visible inside), `launch`
(bubblewrap on its way up), `instance` (one running sandbox), `command`, `capture` and `reaper` (one command in it: its
run, its output, its end), `transfer` (files in and out).

Results from it are comparable only with each other: the userland is the host's, and nothing limits memory or CPU.
"""
