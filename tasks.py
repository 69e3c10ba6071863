"""The tasks of Buzzbench: their options, help texts and pre-tasks. What they do is in `bench/`, a module a task."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent
if Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
    # Plain `inv` of another environment: the bootstrap runs the same command in the locked one.
    os.execv(ROOT / "inv", [str(ROOT / "inv"), *sys.argv[1:]])  # noqa: S606
# Invoke switches byte code off, and every later start would compile the project anew.
sys.dont_write_bytecode = False
# pydantic would look through every installed package for plugins of its own: 12 ms, and there are none.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from bench.garbage import collect_seldom  # noqa: E402

collect_seldom()

from bench.output import guard  # noqa: E402

guard()

from invoke import Collection, Context, task  # noqa: E402

from bench import commands  # noqa: E402
from bench.stages import Stage, whole_number  # noqa: E402

stage = partial(task, klass=Stage)

STACK_HELP = "embedded (no Docker) or compose (production images); by default what the plan needs."
JSON_HELP = "Print one JSON object on standard output."


@stage(help={"show": "Print all keys, the secret ones too, in both encodings."})
def keys(c: Context, show: bool = False) -> None:
    """Make the keys and secrets of this project, once."""
    commands.keys(show=show)


@stage(pre=[keys])
def env(c: Context) -> None:
    """Write the production stack's .env from the keys."""
    commands.env()


@stage(
    pre=[env],
    check=commands.check_up,
    help={
        "fresh": "Drop the stack's data first; the keys stay.",
        "stack": "embedded (no Docker) or compose (production images); by default what runs, else embedded.",
    },
)
def up(c: Context, fresh: bool = False, stack: str = "") -> None:
    """Start relay, PostgreSQL and gateway; a no-op when they run."""
    commands.up(fresh=fresh, stack=stack)


@stage(pre=[up])
def schema(c: Context) -> None:
    """Apply the benchmark schema to the stack's PostgreSQL."""
    commands.schema()


@stage(
    check=commands.check_xbuild,
    help={
        "manifest": "The condition whose agents are needed; by default that of `inv bench`.",
        "source": "A checkout of Buzz; by default the public repository is cloned, at a pinned revision.",
        "image": "The image that it is built in, by default rust:1.98-alpine.",
        "arch": "Build for amd64 or arm64, or a target triple; by default what the Docker engine is.",
        "force": "Build also what is there already.",
    },
)
def xbuild(
    c: Context, manifest: str = "", source: str = "", image: str = "", arch: str = "", force: bool = False
) -> None:
    """Build the Linux agent binaries that a condition needs."""
    commands.xbuild(manifest=manifest, source=source, image=image, arch=arch, force=force)


@stage(help={"source": "The checkout of Buzz that the app is in."})
def gui(c: Context, source: str = "") -> None:
    """Open the Buzz desktop app as the benchmark user."""
    commands.gui(source=source)


@stage(
    pre=[keys, env, xbuild, up, schema],
    check=commands.check_bench,
    plan=commands.plan_bench,
    iterable=["include_task", "exclude_task", "agent_kwarg", "environment_kwarg"],
    kinds=dict.fromkeys(["attempts", "n_concurrent", "n_tasks", "max_retries"], whole_number),
    shorts={
        "dataset": "d",
        "path": "p",
        "include_task": "i",
        "exclude_task": "x",
        "attempts": "k",
        "n_concurrent": "n",
        "n_tasks": "l",
        "environment": "e",
    },
    help={
        "dataset": "A registry dataset, by default terminal-bench/terminal-bench-2-1; not with --path.",
        "path": "A task, or a folder of tasks.",
        "include_task": "NAME: only tasks of this name, or that match it as a glob; repeatable.",
        "exclude_task": "NAME: no task of this name, or that matches it as a glob; repeatable.",
        "n_tasks": "At most so many tasks, the first by name of those selected.",
        "layer": "Only tasks of this layer of buzz-dataset/: regression or workflow.",
        "attempts": "Attempts per task; by default 5, in buzz-dataset/ 1 (regression) or 3 (workflow).",
        "manifest": "The condition: a team manifest; by default manifests/tb-cobol-sonnet-haiku.yaml, for a rehearsal "
        "manifests/rehearsal.yaml.",
        "endpoint_config": "The file that says where models are; by default manifests/endpoints/anthropic-live.json.",
        "n_concurrent": "Trials at the same time; by default 4.",
        "jobs_dir": "Where jobs are written; by default jobs/.",
        "job_name": "The job's name; by default lb-<condition>-<UTC>. One that exists goes on, with the same input.",
        "resume": "Go on with this job, by its name or directory, with the input that it began with.",
        "rehearsal": "Use the scripted model: no key, no cost.",
        "script": "With --rehearsal: which script of each task, by default good.",
        "stack": STACK_HELP,
        "environment": "sandbox, or one of Harbor's environments; by default docker, for a rehearsal sandbox.",
        "agent": "A baseline: one of Harbor's agents in the team's place, such as oracle, nop or terminus-2.",
        "model": "With --agent: another model of the manifest than its lead's.",
        "agent_kwarg": "NAME=VALUE: an option of that agent; repeatable.",
        "environment_kwarg": "NAME=VALUE: an option of Harbor's environment; repeatable.",
        "max_retries": "Run again what the infrastructure broke, at most so often a trial; never what has a score.",
        "harbor_config": "A file with more of Harbor's job configuration, such as multipliers or mounts.",
        "record": "Record the job's model calls on a cassette, in its directory.",
        "replay": "Play this cassette, or that of this job, in the models' place: no key, no cost.",
        "budget_usd": "Each job may cost at most so many USD; one that goes on may have another cap, or none.",
        "budget_tokens": "Each job may use at most so many tokens, of all classes; or none, for no cap.",
        "budget_calls": "Each job may make at most so many model calls; or none, for no cap.",
        "leaderboard": "Refuse what could not stand on a leaderboard, before anything starts.",
        "upload": "Upload the finished job to Harbor Hub, if it is eligible for a leaderboard.",
        "upload_anyway": "Upload it, eligible or not.",
        "gui": "Open the Buzz desktop app beside the run.",
        "fresh": "Drop the stack's data first; the keys stay.",
        "dry_run": "Print the plan and the harbor command, and start nothing.",
        "json": JSON_HELP,
    },
)
def bench(
    c: Context,
    dataset: str = "",
    path: str = "",
    include_task: list[str] | None = None,
    exclude_task: list[str] | None = None,
    n_tasks: int = 0,
    layer: str = "",
    attempts: int = 0,
    manifest: str = "",
    endpoint_config: str = "",
    n_concurrent: int = 0,
    jobs_dir: str = "",
    job_name: str = "",
    resume: str = "",
    rehearsal: bool = False,
    script: str = "",
    stack: str = "",
    environment: str = "",
    agent: str = "",
    model: str = "",
    agent_kwarg: list[str] | None = None,
    environment_kwarg: list[str] | None = None,
    max_retries: int = 0,
    harbor_config: str = "",
    record: bool = False,
    replay: str = "",
    budget_usd: str = "",
    budget_tokens: str = "",
    budget_calls: str = "",
    leaderboard: bool = False,
    upload: bool = False,
    upload_anyway: bool = False,
    gui: bool = False,
    fresh: bool = False,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Run the whole pipeline: keys, stack, Harbor jobs, result."""
    options = dict(locals())
    del options["c"]
    commands.bench(**options)


@stage(
    pre=[keys, env, up, schema],
    check=commands.check_validate,
    plan=commands.plan_validate,
    kinds={"n_concurrent": whole_number},
    shorts={"path": "p", "environment": "e", "n_concurrent": "n"},
    help={
        "path": "A task, or a folder of tasks, in Harbor's format; by default buzz-dataset/.",
        "run": "Play every task to ends that are known, and see that the verdicts are right.",
        "manifest": "The condition that the scripts are for; by default manifests/rehearsal.yaml.",
        "environment": "With --run: sandbox, the default, or one of Harbor's environments.",
        "n_concurrent": "With --run: trials at the same time; by default 4.",
        "json": JSON_HELP,
    },
)
def validate(
    c: Context,
    path: str = "",
    run: bool = False,
    manifest: str = "",
    environment: str = "",
    n_concurrent: int = 0,
    json: bool = False,
) -> None:
    """Find all faults of a dataset; with --run, of its verdicts."""
    commands.validate(
        path=path, run=run, manifest=manifest, environment=environment, n_concurrent=n_concurrent, json=json
    )


@stage(
    check=commands.check_doctor,
    kinds={"n_concurrent": whole_number},
    shorts={"path": "p", "n_concurrent": "n"},
    help={
        "manifest": "The condition to look at; by default that of `inv bench`.",
        "endpoint_config": "The endpoint file to look at; by default that of `inv bench`.",
        "path": "The tasks to look at; by default buzz-dataset/.",
        "n_concurrent": "So many trials at the same time; by default 4.",
        "strict": "End with 3 also where a check warned or was skipped; so it does where CI is set.",
        "json": JSON_HELP,
    },
)
def doctor(
    c: Context,
    manifest: str = "",
    endpoint_config: str = "",
    path: str = "",
    n_concurrent: int = 0,
    strict: bool = False,
    json: bool = False,
) -> None:
    """Say what this machine lacks, each with the way out."""
    commands.doctor(
        manifest=manifest,
        endpoint_config=endpoint_config,
        path=path,
        n_concurrent=n_concurrent,
        strict=strict,
        json=json,
    )


@stage
def down(c: Context) -> None:
    """Stop the stack; its data and the keys stay."""
    commands.down()


@stage(
    kinds={"lines": whole_number},
    help={
        "service": "One service only, such as relay; without it all of them.",
        "lines": "How many lines of each; by default 20.",
        "follow": "Go on with what they say from now on, until Ctrl-C.",
    },
)
def logs(c: Context, service: str = "", lines: int = 20, follow: bool = False) -> None:
    """Show what the stack's services said last."""
    commands.logs(service=service, lines=lines, follow=follow)


@stage(help={"json": JSON_HELP})
def status(c: Context, json: bool = False) -> None:
    """Say what runs: services, ports, jobs."""
    commands.status(json=json)


@stage(
    iterable=["job"],
    help={"job": "JOB: a job's directory or name; repeatable. By default the newest.", "json": JSON_HELP},
)
def report(c: Context, job: list[str] | None = None, json: bool = False) -> None:
    """Print a finished job's result anew, from its records alone."""
    commands.report(job=job or [], json=json)


@stage(
    help={
        "job": "A job's directory or name; by default the newest.",
        "trial": "Only the trials of this name or task, or that match it as a glob.",
        "json": JSON_HELP,
    },
)
def chat(c: Context, job: str = "", trial: str = "", json: bool = False) -> None:
    """Show what was said in a job's trials."""
    commands.chat(job=job, trial=trial, json=json)


@stage(
    iterable=["job"],
    help={
        "job": "JOB: one side, a job's directory or name, or several with commas. Give it twice: A, then B.",
        "json": JSON_HELP,
    },
)
def compare(c: Context, job: list[str] | None = None, json: bool = False) -> None:
    """Say which of two teams solves more, and at what cost."""
    commands.compare(job=job or [], json=json)


@stage(
    check=commands.check_pack,
    iterable=["job", "model_org", "let_be"],
    help={
        "job": "JOB: a job's directory or name; repeatable, for jobs that measured the same. By default the newest.",
        "out": "The directory to make; by default packs/JOB beside the jobs.",
        "agent_url": "For metadata.yaml: a link to what played.",
        "agent_name": "For metadata.yaml: its name; by default the condition's.",
        "org": "For metadata.yaml: whose it is.",
        "model_org": "MODEL=ORG, for metadata.yaml: whose a model is that no known provider serves; repeatable.",
        "let_be": "MARK: the mark of a finding that only looks like a secret; repeatable.",
        "anyway": "Pack also what no leaderboard would take.",
        "verify": "Check this pack, instead of making one: its signature and every file.",
        "key": "With --verify: the public key, in hex, that must have signed it.",
        "json": JSON_HELP,
    },
)
def pack(
    c: Context,
    job: list[str] | None = None,
    out: str = "",
    agent_url: str = "",
    agent_name: str = "",
    org: str = "",
    model_org: list[str] | None = None,
    let_be: list[str] | None = None,
    anyway: bool = False,
    verify: str = "",
    key: str = "",
    json: bool = False,
) -> None:
    """Pack finished jobs, signed and without secrets, to send in."""
    commands.pack(
        job=job or [],
        out=out,
        agent_url=agent_url,
        agent_name=agent_name,
        org=org,
        model_org=model_org or [],
        let_be=let_be or [],
        anyway=anyway,
        verify=verify,
        key=key,
        json=json,
    )


@stage(
    help={
        "job": "A job's directory or name; by default the newest.",
        "watch": "Follow a running job, until it ends or Ctrl-C.",
        "json": JSON_HELP,
    },
)
def spend(c: Context, job: str = "", watch: bool = False, json: bool = False) -> None:
    """Say what a job's model calls cost, and how near its caps are."""
    commands.spend(job=job, watch=watch, json=json)


@stage(
    help={
        "job": "A job's directory or name; by default the newest.",
        "prices": "A price sheet: a YAML file with `dated` and `prices`, in USD per million tokens.",
        "json": JSON_HELP,
    }
)
def reprice(c: Context, job: str = "", prices: str = "", json: bool = False) -> None:
    """Cost a job's measured tokens at other prices."""
    commands.reprice(job=job, prices=prices, json=json)


@stage(help={"model": "The model's name, as its provider has it."})
def prices(c: Context, model: str = "") -> None:
    """Print a start value for a model's price row."""
    commands.prices(model=model)


@stage(
    help={
        "fast": "Leave out the tests that run a whole pipeline.",
        "docker": "Only the tests that need a Docker engine.",
        "match": "Only tests that match this expression, as pytest's -k has it.",
    }
)
def test(c: Context, fast: bool = False, docker: bool = False, match: str = "") -> None:
    """Run the tests, with real PostgreSQL, relay, Harbor and sandbox."""
    commands.test(fast=fast, docker=docker, match=match)


@stage(help={"match": "Only tests that match this expression, as pytest's -k has it."})
def stress(c: Context, match: str = "") -> None:
    """Run the tests of minutes: random kills, dead services."""
    commands.stress(match=match)


@stage
def check(c: Context) -> None:
    """Check style, types and generated texts; warnings are errors."""
    commands.check()


@stage(help={"upgrade": "Take newer versions where pyproject.toml allows them."})
def lock(c: Context, upgrade: bool = False) -> None:
    """Renew requirements.lock from pyproject.toml."""
    commands.lock(upgrade=upgrade)


@stage(
    help={"only": "One benchmark by its name; without it all of them.", "json": JSON_HELP},
)
def perf(c: Context, only: str = "", json: bool = False) -> None:
    """Measure speed, side by side with a yardstick in one run."""
    commands.perf(only=only, json=json)


namespace = Collection(
    keys,
    env,
    up,
    schema,
    xbuild,
    gui,
    bench,
    validate,
    doctor,
    down,
    logs,
    status,
    report,
    chat,
    compare,
    pack,
    spend,
    test,
    stress,
    check,
    lock,
    perf,
    reprice,
    prices,
)
