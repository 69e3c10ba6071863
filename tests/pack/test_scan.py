"""No secret leaves in a pack, whatever its form, and what is none is let be (public case 45)."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import random
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from bench.nostr import Key
from bench.pack import known
from bench.pack.scan import Finding, Scanner
from bench.records import planrecord
from bench.secretforms import is_weak
from tests.pack import jobs
from tests.planning.kit import project

KEY = "canary+key/5f0c1d7e9b==4a"


SHAPED = {
    "sk-ant": "sk-" + "ant-api03-" + "a1B2" * 6,
    "sk": "sk-" + "proj-" + "4cD_" * 6,
    "google": "AIza" + "0aB" * 11 + "xy",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws session": "ASIA" + "Y34FZKBOKMUTVV7A",
    "github": "ghp_" + "a1" * 18,
    "github fine-grained": "github_pat_" + "a1_" * 12,
    "slack": "xoxb-" + "1234567890-abc",
    "daytona": "dtn_" + "a1" * 16,
    "hugging face": "hf_" + "aB" * 17,
    "gateway": "bzbtok-" + "aB3_" * 11,
    "nsec": Key("07" * 32).nsec,
    "bearer": "Authorization: Bearer " + "aB3." * 6,
    "header": "x-api-key: " + "aB3" * 8,
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "groq": "gsk_" + "a1B2" * 13,
    "xai": "xai-" + "a1B2" * 20,
    "gitlab": "glpat-" + "a1_B" * 5,
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3" + "." + "aB3_" * 10,
    "aws secret": "aws_secret_access_key = " + "aB3/" * 10,
}


def found(content: str | bytes, name: str = "a.json", **scanner: Any) -> list[Finding]:
    given: dict[str, Any] = {"secrets": {"the value of KEY": KEY}, "publics": {}} | scanner
    return Scanner(**given).scan(content if isinstance(content, bytes) else content.encode(), name)


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
        quote(KEY, safe=""),
        json.dumps(KEY).replace("/", "\\/"),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"ab{KEY}cd".encode()).decode(),
    ],
)
def test_a_secret_of_ours_is_found_in_every_usual_form(form: str) -> None:
    (first, *_) = found(f'one\ntwo {form} "x"\n', "trial/agent/notes.txt")
    assert first.place == "trial/agent/notes.txt:2"
    assert "the value of KEY" in first.what
    assert first.mark == ""


AWKWARD = 'c4nary"of\\a/pässword\nin two lines'


@pytest.mark.parametrize("pure", [True, False])
def test_a_secret_that_json_escapes_is_found_however_deep_in_strings_of_json(pure: bool) -> None:
    text = f"the key: {AWKWARD}!"
    for depth in range(4):
        (finding, *_) = found(text, "a.txt", secrets={"the value of KEY": AWKWARD})
        assert "the value of KEY" in finding.what, depth
        assert not found(text.replace("c4nary", "no").replace("lines", "no"), "a.txt", secrets={"A": AWKWARD})
        text = json.dumps({"text": text}, ensure_ascii=pure)


@pytest.mark.parametrize("cut", range(6, len(KEY) - 5))
def test_a_secret_of_ours_is_found_wherever_it_is_cut_in_two(cut: int) -> None:
    text = json.dumps({"a": KEY[:cut], "b": {"c": KEY[cut:]}})
    halved, whole = Finding("a.json:1", "half of the value of KEY"), "the value of KEY, over two fields"
    assert found(text) == [Finding("a.json, b.c", whole), halved]


@pytest.mark.parametrize("half", [slice(None, 13), slice(12, None)])
def test_half_of_a_secret_of_ours_is_found_encoded_too(half: slice) -> None:
    text = base64.b64encode(b"x" + KEY[half].encode() + b"yz").decode()
    assert [finding.what for finding in found(text)] == ["half of the value of KEY"]


@pytest.mark.parametrize("name", SHAPED)
def test_what_looks_like_a_key_is_found_with_a_mark_and_never_shown(name: str) -> None:
    shape = SHAPED[name]
    text = f"line\nexport A='{shape}'\n"
    (finding,) = found(text, "agent/out.txt")
    assert finding.place == "agent/out.txt:2"
    assert len(finding.mark) == 12
    assert shape not in str(finding)
    assert found(text, "agent/out.txt", secrets={}, let_be=[finding.mark]) == []


@pytest.mark.parametrize("name", SHAPED)
def test_what_looks_like_a_key_is_found_in_base64(name: str) -> None:
    text = base64.b64encode(f"x {SHAPED[name]} y".encode()).decode()
    assert any("in Base64" in finding.what for finding in found(f'{{"a": "{text}"}}'))


@pytest.mark.parametrize("name", sorted({*SHAPED} - {"header", "bearer"}))
def test_what_looks_like_a_key_is_found_over_two_fields(name: str) -> None:
    shape = SHAPED[name]
    text = json.dumps({"steps": [{"head": f"take {shape[:9]}", "tail": f"{shape[9:]} and go"}]})
    places = [finding.place for finding in found(text) if "over two fields" in finding.what]
    assert places == ["a.json, steps.0.tail"]
    lines = f"{{}}\n{json.dumps([shape[:9], shape[9:]])}\n"
    places = [f.place for f in found(lines, "a.jsonl") if "over two fields" in f.what]
    assert places == ["a.jsonl:2, 1"]


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha256(b"event").hexdigest(),
        "0f" * 64,
        Key("07" * 32).public,
        Key("07" * 32).npub,
        "the disk-usage-of-the-whole-partition and sk-learn-compatible-estimators",
        "bearer of bad news, the x-api-key header, api-key: none",
        "AKIA is a prefix, and so is AIza",
        "sha256:" + "ab" * 32,
        "canary and keys",
        base64.b64encode(b"an ordinary text that was encoded, nothing else").decode(),
    ],
)
def test_what_is_no_secret_is_let_be(text: str) -> None:
    assert found(json.dumps({"a": text, "b": ["x", text], "c": "y"})) == []


@pytest.mark.parametrize("form", [str.lower, str.upper])
def test_the_secret_key_of_a_member_is_known_by_its_public_key(form: Any) -> None:
    """Nobody has the keys of a trial that is over; an event's id of as many digits is none."""
    text = json.dumps({"id": hashlib.sha256(b"event").hexdigest(), "note": form("07" * 32)})
    publics = {Key("07" * 32).public: "worker-1 in alpha__1"}
    assert found(text, publics=publics) == [Finding("a.json:1", "the secret key of worker-1 in alpha__1")]


@pytest.mark.parametrize("secret", ["s3cret-value-of-mine", SHAPED["sk-ant"], SHAPED["github"]])
@pytest.mark.parametrize("form", [str, lambda text: base64.b64encode(text.encode()).decode().rstrip("=")])
def test_a_name_that_holds_a_secret_is_found_and_not_shown(secret: str, form: Any) -> None:
    name = form(secret)
    first, *_, last = found("and more\n" + KEY, f"artifacts/a{name}.txt/b", secrets={"A": secret, "B": KEY})
    assert first.place in ("artifacts/[...]", "[...]")
    assert first.what.startswith("in its name ")
    assert last == Finding(f"{first.place}:2", "B, in plain")


def test_both_halves_of_a_secret_in_a_name_are_left_out() -> None:
    secret = KEY.replace("/", "-")
    (finding,) = found("", f"agent/{secret[:13]}/and/{secret[13:]}", secrets={"A": secret})
    assert finding.place == "agent/[...]"


@pytest.mark.parametrize("content", [b"", b"\0\xff\xfe" * 100, b"{" * 10_000, b'{"a": "cut of'])
def test_whatever_a_file_holds_it_is_looked_at(content: bytes) -> None:
    assert found(content) == []
    assert len(found(content + KEY.encode())) >= 1


# What is known to be secret


def test_the_state_and_the_environment_are_known(tmp_path: Path) -> None:
    from bench.keys import ensure

    settings = jobs.settings(tmp_path)
    state = ensure(settings.state_dir)
    environ = {
        "ANTHROPIC_API_KEY": "sk-live-1",
        "MY_TOKEN": "tok-12345678",
        "SHORT_KEY": "abc",
        "HOME": "/root/1234567",
        "KEY_SECRET_FILE": str(tmp_path),
        "PEM_SECRET": "a line of a key\n" * 400,
    }
    values = known.secrets(settings, environ)
    assert {values["the value of ANTHROPIC_API_KEY"], values["the value of MY_TOKEN"]} == {"sk-live-1", "tok-12345678"}
    assert {state.owner.secret, state.owner.nsec, state.relay.secret, state.postgres_password} <= {*values.values()}
    assert "the value of PEM_SECRET" in values
    assert not any(name.endswith(("HOME", "SHORT_KEY", "KEY_SECRET_FILE")) for name in values)
    assert known.publics(settings, []) == {
        state.owner.public: "the owner",
        state.user.public: "the user",
        state.relay.public: "the relay",
    }


WORDS = {"MY_TOKEN": "test", "DB_PASS": "password", "AUTH": "Not-Required", "KEY_DATE": "2026-11-30", "A_KEY": "-" * 30}


def test_a_value_that_turns_up_by_chance_is_not_looked_for_and_that_is_said(tmp_path: Path) -> None:
    """Else a word that somebody has exported would be a secret in each place that has it, and no pack be made."""
    switches = {"TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "4096", "EMPTY_KEY": ""}
    environ = {
        **WORDS,
        **switches,
        "REAL_KEY": KEY,
        "PASSPHRASE": "correct horse battery staple",
        "PIN_KEY": "hunter22",
    }
    values = known.secrets(jobs.settings(tmp_path), environ)
    assert {*values} == {f"the value of {name}" for name in ("REAL_KEY", "PASSPHRASE", "PIN_KEY")}
    assert known.weak(environ) == sorted(WORDS)
    assert not found("a test of the password, and authentication is Not-Required since 2026-11-30", secrets=values)


@pytest.mark.parametrize(
    "letters", [string.ascii_letters + string.digits, string.hexdigits.lower(), string.ascii_letters]
)
def test_a_random_value_is_never_too_weak(letters: str) -> None:
    """Of sixteen characters of the usual alphabets, say: less than one in a million is mistaken for words."""
    draw = random.Random(45)
    assert not [one for _ in range(2000) if is_weak(one := "".join(draw.choices(letters, k=16)))]


def test_a_key_that_is_the_name_of_a_file_here_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s3cret-value").touch()
    monkeypatch.chdir(tmp_path)
    environ = {"MY_TOKEN": "s3cret-value", "MY_KEY_FILE": str(tmp_path / "s3cret-value")}
    assert known.secrets(jobs.settings(tmp_path), environ) == {"the value of MY_TOKEN": "s3cret-value"}


def test_without_a_state_there_are_no_secrets_and_none_is_made(tmp_path: Path) -> None:
    settings = jobs.settings(tmp_path)
    assert known.secrets(settings, {}) == {}
    assert known.publics(settings, [tmp_path]) == {}
    assert not settings.state_dir.exists()


@pytest.mark.parametrize("name", ["OPENAI_KEY", "MY_KEYS_2", "OPENAIKEY", "DB_PASSPHRASE", "LLM_AUTH"])
def test_a_variable_that_is_called_like_a_secret_is_one(tmp_path: Path, name: str) -> None:
    assert known.secrets(jobs.settings(tmp_path), {name: KEY}) == {f"the value of {name}": KEY}


def test_a_variable_that_a_jobs_own_endpoint_file_names_is_a_secret(tmp_path: Path) -> None:
    """Whatever it is called: the file says that it is a key."""
    job = jobs.make(tmp_path)
    endpoints = tmp_path / "endpoints.json"
    jobs.write(endpoints, {"e": {"provider": "openai", "base_url": "http://localhost:1/v1", "api_key_env": "MY_LLM"}})
    environ = {"MY_LLM": KEY, "GIT_AUTHOR_NAME": "Somebody Else"}
    jobs.write(job / "config.json", {"agents": [{"kwargs": {"endpoints": str(endpoints)}}]})
    assert known.secrets(jobs.settings(tmp_path), environ, [job]) == {"the value of MY_LLM": KEY}
    for strange in ({"agents": 5}, {"agents": [{"kwargs": {"endpoints": "a\0b"}}, 5]}, {"agents": [{"kwargs": 5}]}):
        jobs.write(job / "config.json", strange)
        assert known.secrets(jobs.settings(tmp_path), environ, [job]) == {}


def test_a_key_is_known_by_the_jobs_record_when_its_endpoint_file_is_gone(tmp_path: Path) -> None:
    """The record names the variable, and never its value."""
    home = project(tmp_path)
    home.task("alpha")
    given = {"claude-sonnet-4-6": {"provider": "openai", "base_url": "http://localhost:1/v1", "api_key_env": "MY_LLM"}}
    endpoints = home.root / "endpoints.json"
    jobs.write(endpoints, given)
    environ = {"MY_LLM": KEY, "EDITOR": "something-5"}
    plan = home.plan(
        rehearsal=False, endpoint_config=endpoints, environ=environ, job_name="lb-team", stack="embedded",
        manifest=home.manifest(home.team()),
    )  # fmt: skip
    endpoints.unlink()
    (planned,) = plan.jobs
    planned.directory.mkdir(parents=True)
    record = json.dumps(planrecord.describe(plan, planned))
    assert KEY not in record
    (planned.directory / "buzzbench-plan.json").write_text(record)
    assert known.secrets(jobs.settings(tmp_path), environ, [planned.directory]) == {"the value of MY_LLM": KEY}


def test_a_job_that_goes_on_with_a_key_in_another_variable_names_both(tmp_path: Path) -> None:
    home = project(tmp_path)
    home.task("alpha")
    manifest, directory = home.manifest(home.team()), tmp_path / "jobs" / "lb-team"
    directory.mkdir(parents=True)
    for variable in ("MY_LLM", "ANOTHER"):
        endpoints = home.root / "endpoints.json"
        jobs.write(endpoints, {"claude-sonnet-4-6": {"provider": "anthropic", "api_key_env": variable}})
        plan = home.plan(
            rehearsal=False, endpoint_config=endpoints, job_name="lb-team", stack="embedded", manifest=manifest
        )
        (planned,) = plan.jobs
        if variable == "MY_LLM":
            jobs.write(directory / "buzzbench-plan.json", planrecord.describe(plan, planned))
    assert not planrecord.differences(planrecord.load(directory), planrecord.describe(plan, planned))
    planrecord.renew(plan, planned)
    assert planrecord.key_variables(directory) == ("ANOTHER", "MY_LLM")


@pytest.mark.parametrize("strange", [{"key_variables": 5}, {"key_variables": [5, None]}, []])
def test_a_record_that_names_no_variables_names_none(tmp_path: Path, strange: Any) -> None:
    jobs.write(tmp_path / "buzzbench-plan.json", strange)
    assert known.secrets(jobs.settings(tmp_path), {"HOME": KEY}, [tmp_path]) == {}


@pytest.mark.parametrize("strange", [{"roster": 5}, {"roster": True, "user": 5}, {"roster": {"a": 1}}, []])
def test_evidence_of_another_kind_names_nobody(tmp_path: Path, strange: Any) -> None:
    jobs.write(tmp_path / "buzzbench-evidence.json", strange)
    assert known.publics(jobs.settings(tmp_path), [tmp_path]) == {}


@pytest.mark.parametrize("end", ["\n-----END PRIVATE KEY-----\n", ""])
def test_a_private_key_that_is_let_be_lets_no_other_through(end: str) -> None:
    """The first line is the same for all of them."""
    begin = "-----BEGIN " + "PRIVATE KEY-----\n"
    one, other = (begin + body * 20 + end for body in ("MIIExample", "MIISecrets"))
    (finding,) = found(one, "a.pem")
    assert found(one, "a.pem", let_be=[finding.mark]) == []
    assert len(found(other, "a.pem", let_be=[finding.mark])) == 1
    encoded = [base64.b64encode(key.encode()).decode() for key in (one, other)]
    marks = {finding.mark for finding in found(encoded[0], "a.txt")}
    assert found(encoded[0], "a.txt", let_be=marks) == []
    assert found(encoded[1], "a.txt", let_be=marks) != []


def test_a_name_that_is_not_utf8_or_has_lines_is_looked_at_and_shown_in_one_line() -> None:
    (finding,) = found(KEY, "artifacts/a\udcff\nb")
    assert str(finding) == "artifacts/a\\udcff\\nb:1: holds the value of KEY, in plain"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\n"])
@pytest.mark.parametrize(("encode", "before"), [(base64.b64encode, 45), (base64.b64encode, 46), (bytes.hex, 25)])
def test_a_secret_of_ours_is_found_in_lines_of_base64_and_of_hex(line_end: str, encode: Any, before: int) -> None:
    """As `env | base64` breaks it, and as `xxd -p` does: the break is in the midst of it."""
    text = encode(("x" * before + KEY + "y" * 40).encode())
    text = text if isinstance(text, str) else text.decode()
    lines = line_end.join(text[at : at + 76] for at in range(0, len(text), 76))
    assert "the value of KEY, encoded" in {one.what for one in found(lines, "a.txt")}


def test_what_looks_like_a_key_is_found_in_lines_of_base64() -> None:
    text = base64.encodebytes(f"{'x' * 38} {SHAPED['github']} {'y' * 50}".encode())
    assert [one.what for one in found(text, "a.txt")] == ["a GitHub token (gh._…), in Base64"]


RAW = bytes.fromhex("07" * 31 + "08")


@pytest.mark.parametrize("form", [RAW, b"ab" + RAW + b"c", base64.b64encode(RAW), base64.b64encode(b"ab" + RAW)])
def test_a_secret_key_of_ours_is_found_as_bytes_and_in_their_base64(form: bytes) -> None:
    assert [one.what for one in found(form, secrets={"the owner's secret key": RAW.hex()})] == [
        "the owner's secret key, as bytes"
    ]


@pytest.mark.parametrize("form", [RAW, base64.b64encode(RAW), b"key=" + base64.urlsafe_b64encode(RAW).rstrip(b"=")])
def test_an_agents_secret_key_is_known_as_bytes_and_in_base64(form: bytes) -> None:
    publics = {Key(RAW.hex()).public: "worker-1 in alpha__1"}
    (finding,) = found(form, "a.bin", secrets={}, publics=publics)
    assert finding.what.startswith("the secret key of worker-1 in alpha__1, ")
    other = form.replace(b"B", b"C") if form != RAW else bytes(31) + b"\1"
    assert found(other, "a.bin", secrets={}, publics=publics) == []


@pytest.mark.parametrize("name", SHAPED)
def test_what_looks_like_a_key_is_found_in_hex_and_in_escapes(name: str) -> None:
    text = f"x {SHAPED[name]} y"
    (finding, *_) = found(text.encode().hex(), "a.txt")
    assert finding.what.endswith(", in hex")
    for escape in ("\\u{:04x}", "\\x{:02x}", "%{:02X}"):
        form = "".join(escape.format(ord(one)) for one in text)
        assert found(form, "a.txt")[0].mark != ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("secret", [KEY, SHAPED["github"]])
def test_a_secret_is_found_in_wide_letters(secret: str, encoding: str) -> None:
    (finding,) = found(f"one\nkey={secret} and\n".encode(encoding), "a.txt")
    assert finding.place == "a.txt:2"


@pytest.mark.parametrize("space", ["%20", "+"])
def test_a_private_key_is_found_in_an_address(space: str) -> None:
    assert found("?key=-----BEGIN RSA PRIVATE KEY-----&a=b".replace(" ", space), "a.txt")[0].what == "a private key"


# What is made to keep a search busy


def test_of_findings_without_end_so_many_are_told() -> None:
    lines = "".join(f"sk-{number:020}\n" for number in range(5000))
    assert len(found(lines, "a.txt")) == 100
    (finding,) = found("sk-" + "1" * 20, "a.txt")
    assert found(("sk-" + "1" * 20 + "\n") * 5000, "a.txt", let_be=[finding.mark]) == []


@pytest.mark.parametrize(
    "text",
    [
        *("sk-", "-eyJ", "bearer ", "x-api-key: ", "-----BEGIN ", "-----BEGIN A ", "glpat-", "aws_secret_key"),
        *("a b", "\\u0061", "%41", "a\0\0", "{[", "AB/+", "0f", " \n"),
    ],
)
def test_a_text_of_beginnings_is_looked_through_once(text: str) -> None:
    """Where each beginning was followed to the end of the text, this would take hours."""
    assert found(text * (1_000_000 // len(text)), "a.txt") == []


def test_numbers_without_end_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("bench.pack.scan"), "MOST_NUMBERS", 20)
    numbers = "\n".join(hashlib.sha256(f"{number}".encode()).hexdigest() for number in range(30))
    publics = {Key("07" * 32).public: "worker-1 in alpha__1"}
    (finding,) = found(numbers, "a.txt", publics=publics)
    assert finding.what == "more than 20 numbers as long as a key, which can't be looked into"
    assert found(numbers, "a.txt", publics=publics, let_be=[finding.mark]) == []
