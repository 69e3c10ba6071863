"""`inv pack` as people type it: bad input is one clear line, and nothing is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pack import jobs
from tests.pipeline import Installation, contents

SAID = ("--agent-url", "https://example.org", "--org", "Example")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--job", "nope"], 2, "inv: --job nope: no such job; `ls {jobs}` lists them"),
        (["--model-org", "claude-x"], 2, "inv: --model-org claude-x: its form is MODEL=ORG"),
        (["--key", "ab"], 2, "inv: --key: whose signature it should be is for --verify; leave it out"),
        (
            ["--verify", "x", "--job", "lb-team", "--anyway"],
            2,
            "inv: --verify: checks a pack that is there: --job, --anyway has no effect; leave it out",
        ),
        (
            ["--verify", "x", "--key", "ab"],
            2,
            "inv: --key: is no public key: that is 64 hex digits; take it as `inv pack` printed it",
        ),
        (["--verify", "nowhere"], 2, "inv: nowhere: is no pack: there is no buzzbench-pack.json"),
        (["--out", "{jobs}", *SAID], 2, "inv: {jobs}: is there already, and no pack; give another --out"),
        (
            ["--org", "Example"],
            2,
            "inv: metadata.yaml: agent_url: a board wants a link to what played; give --agent-url https://…",
        ),
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    jobs.make(tmp_path)
    installation = Installation(tmp_path, 1)
    before = contents(tmp_path)
    place = str(tmp_path / "jobs")
    done = installation.inv("pack", *(word.format(jobs=place) for word in words))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said.format(jobs=place) + "\n")
    assert {path: data for path, data in contents(tmp_path).items() if path.parent.name != "state"} == before


def test_a_pack_is_made_checked_and_the_commands_printed(tmp_path: Path) -> None:
    jobs.make(tmp_path)
    installation = Installation(tmp_path, 1)
    done = installation.inv("pack", *SAID)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    made = tmp_path / "packs" / "lb-team"
    public = lines[0].rpartition(" ")[2]
    assert lines[0] == f"{made}: packed, signed by {public}"
    assert lines[1] == "leaderboard: eligible"
    assert lines[3].startswith("  HARBOR_TELEMETRY=off ")
    assert lines[3].endswith(f"harbor upload {made}/lb-team --public")
    checked = installation.inv("pack", "--verify", str(made), "--key", public)
    whose = "this installation's key, and the one that was asked for"
    assert checked.stdout == f"{made}: 32 files are as packed, signed by {public}, {whose}\n"
    (made / "lb-team" / "lock.json").write_text("{}")
    harmed = installation.inv("pack", "--verify", str(made))
    assert (harmed.returncode, harmed.stderr) == (1, f"inv: {made}/lb-team/lock.json: is not what was packed\n")
