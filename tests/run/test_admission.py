"""A stop of a whole job: what waits never begins, what is under way comes to its end."""

from __future__ import annotations

import asyncio

from bench.run.admission import Admission
from bench.trial import stops
from bench.trial.stops import Stop

BUDGET = Stop("budget", "the job's cap is reached")


class TrialQueue:
    """Tasks of Harbor's name; tests/conformance/test_harbor.py has the real ones."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.place = asyncio.Semaphore(2)
        self.go = asyncio.Event()
        self.ended: list[int] = []

    async def _run_trial(self, number: int) -> None:
        async with self.place:
            self.admission.begin()
            await self.go.wait()
            self.ended.append(number)


async def test_trials_under_way_end_and_the_others_never_begin() -> None:
    admission = Admission()
    queue = TrialQueue(admission)
    running = [asyncio.create_task(queue._run_trial(number)) for number in range(5)]
    await asyncio.sleep(0)
    admission.stop(BUDGET)
    admission.stop(Stop("waiting", "later"))
    queue.go.set()
    results = await asyncio.gather(*running, return_exceptions=True)
    assert queue.ended == [0, 1]
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [False, False, True, True, True]
    assert admission.stopped == BUDGET


def test_an_announcement_reaches_who_listens() -> None:
    heard: list[Stop] = []
    stops.announce(BUDGET)
    stops.listen(heard.append)
    stops.announce(BUDGET)
    assert heard == [BUDGET]
    stops.listen(lambda stop: None)
