"""Real agents: what a trial costs beyond the team's own work, in containers where there is an engine.

Elsewhere it is a sandbox. The work is REFERENCE.md's: an orchestrator, a worker, a model that answers at once. The
programs are those that a run would take (`inv xbuild`, or BUZZBENCH_AGENT_PROGRAMS); with the tests' stand-ins, which
are written in Python, launch and work are theirs, not ours.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench import places, settings
from bench.docker import engine
from bench.harness.buzz import programs
from bench.perf import Figure
from bench.perf.pipeline import Bench, Run, done_delays_ms, installation
from bench.perf.timing import oracle, quantile, timed
from bench.perf.waiting import Samples
from bench.settings import ROOT

RUNS = 5
SLOW_S = 60
"""Of one model call in the job whose trials must not wear the relay out by waiting (REFERENCE.md section 6)."""
TRIALS = 8

SCRIPT = {
    "orch": [
        {
            "name": "delegate",
            "expect": ["make out.txt"],
            "do": [{"send": {"mention": ["worker-1"], "text": "please write"}}],
        },
        {"name": "finish", "expect": ["REPORT"], "do": [{"done": "made"}]},
    ],
    "worker-1": [
        {"name": "write", "expect": ["please write"], "do": [{"run": "echo hi > /app/out.txt"}]},
        {"name": "report", "on": "result", "do": [{"send": {"mention": ["orch"], "text": "REPORT finished"}}]},
    ],
}
FILES = {
    "task.toml": '[task]\nname = "perf/pair"\n[agent]\ntimeout_sec = 300\n[verifier]\ntimeout_sec = 60\n',
    "instruction.md": "make out.txt\n",
    "environment/Dockerfile": "FROM python:3.13-slim-bookworm\nWORKDIR /app\n",
    "solution/solve.sh": "#!/bin/sh\necho hi > /app/out.txt\n",
    "tests/test.sh": "#!/bin/sh\ntest -f /app/out.txt; echo $((1 - $?)) > /logs/verifier/reward.txt\n",
}


def measure() -> Iterator[Figure]:
    """Teams of two, alone and eight at a time; a team of five for what a further agent takes."""
    where = "sandbox" if engine.problem("inv perf") else "docker"
    programs.load(places.programs_directory(settings.load()), forwarder=where == "docker")
    with installation() as bench, tempfile.TemporaryDirectory(prefix="bzb-perf-") as home:
        task = _task(Path(home) / "pair")
        pair, five = (_manifest(Path(home), workers) for workers in (1, 4))
        alone, floors = _beside_the_oracle(bench, task, pair, where)
        facts = [_facts(result) for run in alone for result in run.results()]
        yield from _one_trial(alone, facts, where)
        if floors:
            pairs = list(zip(alone, floors, strict=True))
            ratio = median(run.wall_s / wall for run, (wall, _) in pairs)
            yield Figure("wall against the oracle's, pair by pair", ratio, "x", 1.6)
            ratio = median(run.cpu_s / cpu for run, (_, cpu) in pairs)
            # 2.2 s where the oracle takes 1.95 (REFERENCE.md section 3), which other machines don't.
            yield Figure("CPU against the oracle's, pair by pair", ratio, "x", 1.13, note="the reference: 2.2 x")
        wide = _facts(_run(bench, task, five, where).results()[0])
        further = (_launch_s(wide) - median(map(_launch_s, facts))) / 3
        yield Figure("each further agent", further, "s", 0.1)
        many = _run(bench, task, pair, where, *_at_once(TRIALS))
        delays = [delay for run in (*alone, many) for delay in done_delays_ms(bench, run)]
        yield Figure(
            "DONE: at the relay -> trial knows, p50", quantile(delays, 0.5), "ms", 20.0, note=f"n={len(delays)}"
        )
        yield Figure("DONE: at the relay -> trial knows, p99", quantile(delays, 0.99), "ms", 50.0)
        yield Figure(f"our CPU for each of {TRIALS} trials at once", many.cpu_s / TRIALS, "s")
        grown = many.max_rss_bytes - median(run.max_rss_bytes for run in alone)
        yield Figure("driver's memory for each concurrent trial", grown / (TRIALS - 1) / 1e6, "MB", 20.0)
        _slow_down(task)
        samples = Samples(bench.state_dir)
        slow = _run(bench, task, pair, where, *_at_once(TRIALS), watch=samples.take)
        passed = sum(_reward(result) == 1.0 for result in slow.results())
        yield Figure(f"passed of {TRIALS} at once with a model call of {SLOW_S} s", passed, "", TRIALS, at_least=True)
        ours, services = samples.a_minute(*_all_wait(slow))
        note = f"beside it relay and gateway: {services / TRIALS:.3f} s"
        yield Figure("our CPU for a trial's minute of waiting", ours / TRIALS, "s", 0.1, note=note)


def _beside_the_oracle(
    bench: Bench, task: Path, manifest: Path, where: str
) -> tuple[list[Run], list[tuple[float, float]]]:
    """Runs of one trial, and in Docker the oracle's wall and CPU seconds beside each; the first is left out."""
    runs, floors = [], []
    with tempfile.TemporaryDirectory(prefix="bzb-perf-") as home:
        for number in range(RUNS):
            if where == "docker":
                floors.append(timed(*oracle(task, Path(home), f"o{number}")))
            runs.append(_run(bench, task, manifest, where))
    return runs[1:], floors[1:]


def _at_once(trials: int) -> tuple[str, ...]:
    return "-k", str(trials), "-n", str(trials)


def _one_trial(runs: list[Run], facts: list[dict[str, Any]], where: str) -> Iterator[Figure]:
    results = [result for run in runs for result in run.results()]
    yield Figure("job of one trial, wall", median(run.wall_s for run in runs), "s", 6.0, note=where)
    yield Figure("agent execution", median(_span_s(result["agent_execution"]) for result in results), "s", 1.3)
    yield Figure("of it the team's own work", median(fact["timings"]["work"] for fact in facts), "s")
    yield Figure("install of the agents", median(_span_s(result["agent_setup"]) for result in results), "s", 0.1)
    yield Figure("launch and ready, team of two", median(map(_launch_s, facts)), "s", 0.4)
    yield Figure("stopping the agents", median(fact["timings"]["stop"] for fact in facts), "s", 0.3)
    yield Figure("our CPU for a job of one trial", median(run.cpu_s for run in runs), "s", 2.2)


def _task(path: Path) -> Path:
    for name, text in FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if name.endswith(".sh"):
            file.chmod(0o755)
    (path / "rehearsal").mkdir()
    _write_script(path, SCRIPT)
    return path


def _write_script(task: Path, script: dict[str, Any]) -> None:
    (task / "rehearsal" / "good.yaml").write_text(json.dumps(script))


def _slow_down(task: Path) -> None:
    """One call of the worker's takes long."""
    first, *rest = SCRIPT["worker-1"]
    _write_script(task, {**SCRIPT, "worker-1": [{**first, "think_s": [SLOW_S, SLOW_S]}, *rest]})


def _manifest(home: Path, workers: int) -> Path:
    """The rehearsal's team as real agents, with so many workers and one that is named worker-1 among them."""
    text = (ROOT / "manifests" / "rehearsal.yaml").read_text(encoding="utf-8")
    text = text.replace("harness: builtin", "harness: buzz-agent").replace("count: 2", f"count: {workers}")
    if workers == 1:
        text = text.replace("id: worker", "id: worker-1")
    path = home / f"team-{workers}.yaml"
    path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "manifests" / "personas", home / "personas", dirs_exist_ok=True)
    return path


def _run(
    bench: Bench, task: Path, manifest: Path, where: str, *more: str, watch: Callable[[int], object] | None = None
) -> Run:
    attempts = () if "-k" in more else ("-k", "1")
    return bench.rehearse(task, "--manifest", str(manifest), "-e", where, *attempts, *more, watch=watch)


def _all_wait(run: Run) -> tuple[float, float]:
    """Between which moments (Unix time) all its trials were at work."""
    works = [result["agent_execution"] for result in run.results()]
    began, ended = (
        [datetime.fromisoformat(work[name]).timestamp() for work in works] for name in ("started_at", "finished_at")
    )
    return max(began), min(ended)


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = result["agent_result"]["metadata"]["buzzbench"]
    return facts


def _launch_s(facts: dict[str, Any]) -> float:
    return float(sum(facts["timings"][step] for step in ("bring", "launch", "read_back")))


def _reward(result: dict[str, Any]) -> float | None:
    return ((result.get("verifier_result") or {}).get("rewards") or {}).get("reward")


def _span_s(phase: dict[str, str]) -> float:
    began, ended = (datetime.fromisoformat(phase[name]) for name in ("started_at", "finished_at"))
    return (ended - began).total_seconds()
