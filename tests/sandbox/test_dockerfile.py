"""What a Dockerfile may ask for is done as Docker would; everything else is refused by name, with its line."""

from __future__ import annotations

import pytest

from bench.sandbox.dockerfile import Copy, Directory, Dockerfile, Run, parse

BASE = {"PATH": "/usr/bin", "HOME": "/root"}


def read(*lines: str) -> Dockerfile:
    return parse("\n".join(lines), BASE)


def problems(*lines: str) -> list[str]:
    return list(read(*lines).problems)


def test_the_image_and_what_it_would_start_say_nothing() -> None:
    plan = read("# syntax=docker/dockerfile:1", "FROM python:3.13 AS x", "CMD [1]", "LABEL a=b", "expose 80")
    assert plan == Dockerfile(workdir="/")


def test_workdir_is_relative_to_the_one_before() -> None:
    plan = read("WORKDIR /app", "ENV D=deep", "WORKDIR sub/$D", "WORKDIR ..")
    assert plan.workdir == "/app/sub"
    assert plan.steps == (Directory("/app"), Directory("/app/sub/deep"), Directory("/app/sub"))


def test_env_in_both_forms() -> None:
    plan = read("ENV A=1 B='two words'", "ENV C the rest of $A", "ENV A=2 D=$A PATH=/x:$PATH")
    assert plan.environ == {"A": "2", "B": "two words", "C": "the rest of 1", "D": "1", "PATH": "/x:/usr/bin"}


def test_run_knows_where_it_is_and_what_was_set_before() -> None:
    plan = read("WORKDIR /app", "ENV A=1", "RUN make", 'RUN ["a b", "c"]', "ENV A=2")
    assert plan.steps[1:] == (Run(3, "make", "/app", {"A": "1"}), Run(4, "'a b' c", "/app", {"A": "1"}))


def test_long_lines_are_joined_and_comments_in_them_dropped() -> None:
    plan = read("RUN one && \\", "  # why", "", "  two \\  ", "  three", "WORKDIR /x")
    assert plan.steps == (Run(1, "one &&   two   three", "/", {}), Directory("/x"))


@pytest.mark.parametrize(
    ("line", "copy"),
    [
        ("COPY a.txt .", Copy(("a.txt",), "/app", True)),
        ("COPY a.txt b/", Copy(("a.txt",), "/app/b", True)),
        ("COPY a.txt b", Copy(("a.txt",), "/app/b", False)),
        ("COPY a.txt b.txt /x", Copy(("a.txt", "b.txt"), "/x", True)),
        ('COPY ["a b", "/x y"]', Copy(("a b",), "/x y", False)),
        ("COPY /a/../b $HOME/", Copy(("b",), "/root", True)),
        ("ADD . ./", Copy((".",), "/app", True)),
    ],
)
def test_copy(line: str, copy: Copy) -> None:
    assert read("WORKDIR /app", line).steps[1:] == (copy,)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ARG X=1", "ARG: build arguments aren't supported"),
        ("USER app", "USER: root is the only user there"),
        ('SHELL ["/bin/bash", "-c"]', "SHELL: RUN goes through /bin/sh"),
        ("VOLUME /data", "VOLUME: isn't supported"),
        ('ENTRYPOINT ["x"]', "ENTRYPOINT: isn't supported"),
        ("HEALTHCHECK CMD true", "HEALTHCHECK: isn't supported"),
        ("COPY --from=build /a /b", "COPY: --from isn't supported"),
        ("COPY --chown=app a b", "COPY: --chown isn't supported"),
        ("RUN --mount=type=cache,target=/x make", "RUN: --mount isn't supported"),
        ("RUN cat <<EOF", "RUN: a heredoc isn't supported"),
        ("COPY <<EOF /x", "COPY: a heredoc isn't supported"),
        ("COPY a", "COPY: needs a source and a target"),
        ("COPY ../a /b", "COPY: ../a lies outside the task's environment directory"),
        ("COPY a/../../b /b", "COPY: a/../../b lies outside the task's environment directory"),
        ("COPY a /usr/lib/b", "COPY: /usr/lib/b can't be written: it is the host's, read-only"),
        ("WORKDIR /usr/src/app", "WORKDIR: /usr/src/app can't be written: it is the host's, read-only"),
        ("ADD https://x/y /z", "ADD: https://x/y: only plain files of the task can be added"),
        ("ADD a.tar.gz /z", "ADD: a.tar.gz: only plain files of the task can be added"),
        ("RUN set -e; apt-get update", "RUN: apt-get can't install anything: /usr is the host's, read-only"),
        ('RUN ["a"', 'RUN: ["a" is no list in JSON'),
        ("RUN [1]", "RUN: [1] is no list of strings"),
        ("ENV A=1 B", "ENV: B has no value"),
        ("ENV A='1", "ENV: a quote (') isn't closed"),
    ],
)
def test_what_is_refused_is_named(line: str, reason: str) -> None:
    assert problems("FROM x", line) == [f"line 2: {reason}"]


def test_one_stage_only() -> None:
    assert problems("FROM a", "FROM b") == ["line 2: FROM: a second stage isn't supported"]


def test_the_escape_character_stays() -> None:
    assert problems("# escape=`", "FROM a") == ["line 1: another escape character isn't supported"]


def test_all_problems_are_told_at_once() -> None:
    assert len(problems("ARG A", "USER b", "VOLUME c")) == 3


@pytest.mark.parametrize("command", ["python3 -c 'print(1 << 2)'", "cat <<< word", "echo apt-getter"])
def test_a_harmless_run_isnt_taken_for_a_refused_one(command: str) -> None:
    assert not problems(f"RUN {command}")
