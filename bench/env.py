"""`.env` for the production stack, made from the state: the same bytes for the same state (rows K3 and K5)."""

from __future__ import annotations

from pathlib import Path

from bench.files import make_private_directory, write_private
from bench.keys import State
from bench.settings import Settings


def variables(settings: Settings, state: State) -> dict[str, str]:
    """Every variable of row K3, in its order."""
    port = settings.relay_port
    return {
        "BUZZ_IMAGE": settings.buzz_image,
        "BUZZ_DOMAIN": "localhost",
        "RELAY_URL": settings.relay_url,
        "BUZZ_MEDIA_BASE_URL": f"http://localhost:{port}/media",
        "BUZZ_MEDIA_SERVER_DOMAIN": "localhost",
        "BUZZ_CORS_ORIGINS": f"http://localhost:{port}",
        "BUZZ_REQUIRE_AUTH_TOKEN": "true",
        "BUZZ_REQUIRE_RELAY_MEMBERSHIP": "true",
        "BUZZ_ALLOW_NIP_OA_AUTH": "true",
        "BUZZ_AUTO_MIGRATE": "true",
        "BUZZ_GIT_CONFORMANCE_PROBE": "true" if settings.git_probe else "false",
        "RUST_LOG": "buzz_relay=info,buzz_db=info,buzz_auth=info",
        "RELAY_OWNER_PUBKEY": state.owner.public,
        "BUZZ_RELAY_PRIVATE_KEY": state.relay.secret,
        "BUZZ_GIT_HOOK_HMAC_SECRET": state.git_hook_hmac_secret,
        "POSTGRES_DB": "buzz",
        "POSTGRES_USER": "buzz",
        "POSTGRES_PASSWORD": state.postgres_password,
        "REDIS_PASSWORD": state.redis_password,
        "BUZZ_S3_ACCESS_KEY": state.s3_access_key,
        "BUZZ_S3_SECRET_KEY": state.s3_secret_key,
        "BUZZ_S3_BUCKET": "buzz-media",
        "BUZZ_HTTP_PORT": str(port),
        "BUZZ_PG_HOST_PORT": str(settings.postgres_port),
        "BUZZ_METRICS_HOST_PORT": str(settings.metrics_port),
    }


def render(values: dict[str, str]) -> str:
    """The file's text. Compose expands `$` in values, so it is doubled; a value with spaces or `#` is quoted."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in values.items())


def _quoted(value: str) -> str:
    doubled = value.replace("$", "$$")
    if any(c in value for c in " #'\"\\\t"):
        escaped = doubled.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return doubled


def env(settings: Settings, state: State) -> Path:
    """The task: write `.env` into the state directory; returns its path."""
    path = make_private_directory(settings.state_dir) / ".env"
    text = render(variables(settings, state))
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_private(path, text)
    elif path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return path
