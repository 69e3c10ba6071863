"""TOML that people write: every field with its line."""

from __future__ import annotations

import pytest

from bench.errors import InvalidInput
from bench.reading import tomlfile
from bench.reading.yamlfile import Field

TEXT = """top = 1
[task]
name = "a/b"
note = \"\"\"
[environment]
cpus = 9
\"\"\"
[environment]   # what it needs
"cpus" = 2
[environment.healthcheck]
command = 'true'
[[steps]]
name = "one"
[steps.agent]
timeout_sec = 1
[[steps]]
name = "two"
[steps.agent]
timeout_sec = 2
"""


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (("top",), "1: top: wrong"),
        (("task", "name"), "3: [task].name: wrong"),
        (("environment", "cpus"), "9: [environment].cpus: wrong"),
        (("environment", "memory_mb"), "8: [environment].memory_mb: wrong"),
        (("environment", "healthcheck", "command"), "11: [environment.healthcheck].command: wrong"),
        (("steps", 0, "agent", "timeout_sec"), "15: steps[0].agent.timeout_sec: wrong"),
        (("steps", 1, "agent", "timeout_sec"), "19: steps[1].agent.timeout_sec: wrong"),
        (("steps", 1, "verifier", "user"), "16: steps[1].verifier.user: wrong"),
    ],
)
def test_a_field_is_told_with_its_line_or_the_nearest_one_around_it(field: Field, said: str) -> None:
    assert str(tomlfile.parse(TEXT, shown="t").problem(field, "wrong")) == f"t:{said}"


def test_a_file_without_a_line_to_tell_is_told_by_its_name() -> None:
    assert str(tomlfile.parse("", shown="t").problem(("task", "name"), "is missing")) == "t: [task].name: is missing"


def test_broken_toml_is_told_with_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"^t:2: not valid TOML: "):
        tomlfile.parse("a = 1\nb = \n", shown="t")
