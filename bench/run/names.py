"""A name that a plan chose itself is for one run alone, also where two begin in the same second (public case 56)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.errors import BuzzbenchError

if TYPE_CHECKING:
    from bench.planning.planned import Plan


def reserved(plan: Plan) -> Plan:
    """The plan, with the directories of its jobs made; under other names where another run was quicker.

    A name that a person gave stays: whether that job can begin or go on is found when it is claimed.
    """
    from bench.planning.plan import make

    while True:
        made = []
        try:
            for job in plan.jobs:
                job.directory.mkdir(parents=True, exist_ok=plan.options.job_name is not None)
                made.append(job.directory)
        except OSError as error:
            if isinstance(error, FileExistsError) and plan.options.job_name is None and job.directory.is_dir():
                for directory in made:
                    directory.rmdir()
                plan = make(plan.options)
                continue
            raise BuzzbenchError(f"can't be made: {error.strerror}", where=str(job.directory)) from None
        return plan
