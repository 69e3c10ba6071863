"""`.env`: complete, private, the same bytes for the same state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench import env, keys
from bench.settings import Settings

NAMES = """
BUZZ_IMAGE BUZZ_DOMAIN RELAY_URL BUZZ_MEDIA_BASE_URL BUZZ_MEDIA_SERVER_DOMAIN BUZZ_CORS_ORIGINS
BUZZ_REQUIRE_AUTH_TOKEN BUZZ_REQUIRE_RELAY_MEMBERSHIP BUZZ_ALLOW_NIP_OA_AUTH BUZZ_AUTO_MIGRATE
BUZZ_GIT_CONFORMANCE_PROBE RUST_LOG RELAY_OWNER_PUBKEY BUZZ_RELAY_PRIVATE_KEY BUZZ_GIT_HOOK_HMAC_SECRET
POSTGRES_DB POSTGRES_USER POSTGRES_PASSWORD REDIS_PASSWORD BUZZ_S3_ACCESS_KEY BUZZ_S3_SECRET_KEY
BUZZ_S3_BUCKET BUZZ_HTTP_PORT BUZZ_PG_HOST_PORT BUZZ_METRICS_HOST_PORT
""".split()  # noqa: SIM905
"""Row K3 of the reference."""


def test_every_variable_of_the_reference_is_there(tmp_path: Path) -> None:
    state = keys.ensure(tmp_path)
    path = env.env(Settings(state_dir=tmp_path), state)
    lines = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert list(lines) == NAMES
    assert lines["RELAY_URL"] == "ws://localhost:3600"
    assert lines["RELAY_OWNER_PUBKEY"] == state.owner.public
    assert lines["BUZZ_GIT_CONFORMANCE_PROBE"] == "true"
    assert (lines["BUZZ_HTTP_PORT"], lines["BUZZ_PG_HOST_PORT"], lines["BUZZ_METRICS_HOST_PORT"]) == (
        "3600",
        "5633",
        "9602",
    )


def test_it_is_private_and_written_anew_with_the_same_bytes(tmp_path: Path) -> None:
    state = keys.ensure(tmp_path)
    path = env.env(Settings(state_dir=tmp_path), state)
    before = path.read_bytes()
    path.chmod(0o644)
    assert env.env(Settings(state_dir=tmp_path), state).read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_settings_reach_it(tmp_path: Path) -> None:
    settings = Settings(
        state_dir=tmp_path,
        relay_port=4700,
        postgres_port=4701,
        metrics_port=4702,
        git_probe=False,
        buzz_image="local/buzz:1",
    )
    values = env.variables(settings, keys.ensure(tmp_path))
    assert values["BUZZ_IMAGE"] == "local/buzz:1"
    assert values["RELAY_URL"] == "ws://localhost:4700"
    assert values["BUZZ_CORS_ORIGINS"] == "http://localhost:4700"
    assert (values["BUZZ_PG_HOST_PORT"], values["BUZZ_METRICS_HOST_PORT"]) == ("4701", "4702")
    assert values["BUZZ_GIT_CONFORMANCE_PROBE"] == "false"


def test_values_with_special_characters_survive_compose(tmp_path: Path) -> None:
    state = replace(keys.ensure(tmp_path), postgres_password='a$b #"\\c')
    text = env.render(env.variables(Settings(), state))
    assert 'POSTGRES_PASSWORD="a$$b #\\"\\\\c"\n' in text
