"""`inv status`: what of the stack runs, since when, for which jobs, and what earlier runs left."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench.run import left
from bench.settings import Settings
from bench.stack import ServiceStatus, StackStatus, kinds

UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def status(settings: Settings, *, as_json: bool) -> StackStatus:
    """Print the stack's state on standard output: a line a service, or one JSON object.

    The object has `address` (see StackAddress; null when down), `services` (see ServiceStatus), `jobs`, `left`: jobs
    whose run ended before they did (see bench.run.left.Left), and `elsewhere` (see bench.run.left.elsewhere).
    """
    found = kinds.status(settings)
    # In this order: a killed run's last process may end in between, and must not fall between the two.
    others = left.elsewhere(settings)
    lefts = left.found(settings)
    others = [job for job in others if job not in {one.job for one in lefts}]
    if as_json:
        more = {"left": [asdict(one) for one in lefts], "elsewhere": others}
        print(json.dumps(asdict(found) | more, indent=2))
        return found
    for service in found.services:
        print(_line(service))
    if not any(service.state == "running" for service in found.services):
        print("the stack is down; `inv up` starts it")
    for job in found.jobs:
        so_far = left.scored_so_far(settings, job)
        print(f"job {job} runs{f': {so_far}' if so_far else ''}")
    for job in others:
        print(f"job {job}: its run was killed and is ending, or another checkout works on it; look again in a moment")
    for one in lefts:
        print(one)
    return found


def _line(service: ServiceStatus) -> str:
    shown = f"{service.name:<9} {service.state}"
    if service.state == "running":
        shown += f"  pid {service.pid}" if service.pid else ""
        shown += f"  port {service.port}" if service.port else ""
        shown += f"  for {_duration(service.uptime_s)}" if service.uptime_s is not None else ""
    elif service.state == "foreign":
        shown += f"  {service.holder} holds port {service.port}"
    return shown


def _duration(seconds: float) -> str:
    for size, unit in UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
