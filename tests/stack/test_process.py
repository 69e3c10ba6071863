"""A service is known again by whoever comes next, its death is told with its own words, and none is left behind."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.errors import BuzzbenchError
from bench.processes import command_line, wait_until
from bench.stack import process
from bench.stack.process import Ready, Service, Starting


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service("plain", "tests.stack.plain_service", tmp_path / "services", tmp_path / "plain.log")
    yield made
    made.stop()


def config(service: Service, **more: str) -> dict[str, str]:
    return {"ready_file": str(service.ready_file), **more}


def started(service: Service, **more: str) -> Ready:
    starting = service.begin("f")
    starting.configure(config(service, **more))
    return starting.wait()


def test_it_is_known_again_by_its_record(service: Service) -> None:
    ready = started(service)
    again = Service(service.name, service.module, service.home, service.log)
    assert again.running() == ready
    assert ready.port == 12345
    assert ready.fingerprint == "f"


def test_its_record_is_private(service: Service) -> None:
    started(service)
    assert service.record.stat().st_mode & 0o777 == 0o600


def test_a_stopped_one_is_gone_and_stopping_again_is_nothing(service: Service) -> None:
    ready = started(service)
    assert service.stop()
    assert not ready.process.alive()
    assert service.running() is None
    assert not service.stop()


@pytest.mark.parametrize("damage", [None, "", "{", "[]", "{}", '{"pid": 1}'])
def test_one_whose_record_is_lost_or_damaged_is_found_and_counts_as_outdated(
    service: Service, damage: str | None
) -> None:
    ready = started(service)
    service.record.unlink() if damage is None else service.record.write_text(damage)
    found = service.running()
    assert found
    assert (found.process, found.fingerprint) == (ready.process, "")
    assert service.stop()
    assert not ready.process.alive()


def test_one_that_ignores_sigterm_is_killed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOP_S", 0.05)
    ready = started(service, behaviour="stubborn")
    assert service.stop()
    assert not ready.process.alive()


def test_one_that_was_killed_does_not_run(service: Service) -> None:
    ready = started(service)
    ready.process.signal(signal.SIGKILL)
    assert wait_until(lambda: service.running() is None, 10)


def test_another_process_with_its_pid_is_not_it(service: Service) -> None:
    started(service)
    record = json.loads(service.record.read_text())
    service.record.write_text(json.dumps({**record, "started": "1"}))
    assert service.running() is None
    assert not service.stop()
    service.record.write_text(json.dumps(record))  # so that the fixture finds it


def test_one_that_ends_is_told_of_with_its_last_lines(service: Service) -> None:
    service.log.write_text("a line of an earlier run\n")
    starting = service.begin("f")
    starting.configure(config(service, behaviour="refuse"))
    with pytest.raises(BuzzbenchError) as told:
        starting.wait()
    assert str(told.value) == (
        f"the plain ended with status 1; its last lines ({service.log}):\n  the configuration is wrong: no such thing"
    )


def test_one_that_never_serves_is_told_of(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "READY_S", 0.05)
    starting = service.begin("f")
    with pytest.raises(BuzzbenchError, match=r"the plain does not answer after 0 s; its last lines"):
        starting.wait()
    starting.cancel()


def test_a_cancelled_one_is_gone(service: Service) -> None:
    starting: Starting = service.begin("f")
    starting.cancel()
    assert starting.child.wait(10) is not None
    assert service.process() is None


def test_one_whose_starter_died_before_configuring_it_ends_by_itself(service: Service) -> None:
    starting = service.begin("f")
    assert starting.child.stdin is not None
    starting.child.stdin.close()  # what the kernel does for a starter that is killed
    assert starting.child.wait(30) != 0


def test_it_gets_no_secret_of_the_callers_environment(
    service: Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BUZZ_PRIVATE_KEY", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "secret")
    passed = {
        "https_proxy": "http://proxy:1",
        "SSL_CERT_FILE": "/ca.pem",
        "BUZZ_RATE_LIMIT_HUMAN_API_CALLS_PER_MIN": "9",
    }
    for name, value in passed.items():
        monkeypatch.setenv(name, value)
    started(service)
    assert wait_until(lambda: service.log.read_text().endswith("}\n"), 10)
    given = json.loads(service.log.read_text())
    assert "secret" not in given.values()
    assert passed.items() <= given.items()
    assert capfd.readouterr() == ("", "")


def test_nothing_secret_is_on_its_command_line(service: Service) -> None:
    ready = started(service, token="hidden")
    assert "hidden" not in " ".join(command_line(ready.process.pid))
