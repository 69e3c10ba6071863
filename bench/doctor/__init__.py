"""`inv doctor`: what this machine, this installation and this condition have, and what they lack, with the way out.

A check is named, looks at one thing, and says `ok`, `warn`, `fail` or `skip`. It may need others: where one of those
failed it is skipped and names it, so that a cause is told and not its symptoms. `bench/doctor/check.py` has the form,
`run.py` the order and the output, each other module a group of checks. Nothing is started, and nothing written but the
profile of three keys on a stack that is up: the proof that one can write and read.
"""
