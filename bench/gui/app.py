"""`python -m bench.gui.app`: prepares Buzz's desktop app in a checkout, and becomes it.

Standard input has one JSON object: `checkout`, `relay_url`, `private_key`. The key is in the app's environment alone,
on no command line and in no file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from bench.errors import BuzzbenchError
from bench.gui.appstate import IDENTIFIER

SIDECARS = ("buzz-acp", "buzz-agent", "buzz-dev-mcp", "git-credential-nostr", "buzz")
"""Programs that the app brings along (row G1). Newer checkouts name more in its configuration."""

CLI, CLI_PACKAGE = "buzz", "buzz-cli"
"""The only one of them that the app must be able to start."""

CONFIG = {"identifier": IDENTIFIER, "productName": "Buzz Benchmark"}
"""Over the app's own: it shares nothing with a Buzz that the person uses."""


def main() -> None:
    order = json.load(sys.stdin)
    checkout = Path(order["checkout"])
    try:
        prepare(checkout)
    except BuzzbenchError as error:
        sys.exit(f"gui: {error}")
    _say("starting the app")
    environment = os.environ | {"BUZZ_RELAY_URL": order["relay_url"], "BUZZ_PRIVATE_KEY": order["private_key"]}
    os.chdir(checkout / "desktop")
    command = ["pnpm", "exec", "tauri", "dev", "--config", json.dumps(CONFIG)]
    os.execvpe(command[0], command, environment)  # noqa: S606


def prepare(checkout: Path) -> None:
    """What `tauri dev` needs and a fresh checkout lacks. Raises BuzzbenchError where a step fails."""
    if not (checkout / "desktop" / "node_modules").is_dir():
        _say("installing the app's packages")
        _run(["pnpm", "install"], checkout, output=sys.stderr)
    triple = _host_triple(checkout)
    tauri = checkout / "desktop" / "src-tauri"
    binaries = tauri / "binaries"
    binaries.mkdir(exist_ok=True)
    for name in sorted({*SIDECARS, *_configured(tauri / "tauri.conf.json")}):
        # Tauri wants every one of them to be there; those that only agents use may be empty.
        (binaries / f"{name}-{triple}").touch()
    cli = binaries / f"{CLI}-{triple}"
    if not cli.stat().st_size:
        _say(f"building {CLI}")
        shutil.copy(_build_cli(checkout), cli)


def _configured(config: Path) -> list[str]:
    """The names of the sidecars in the app's configuration."""
    try:
        bundle = json.loads(config.read_text(encoding="utf-8")).get("bundle", {})
    except ValueError as error:
        raise BuzzbenchError(f"it is no JSON: {error}", where=str(config)) from None
    return [Path(binary).name for binary in bundle.get("externalBin", [])]


def _host_triple(checkout: Path) -> str:
    """The Rust compiler's own target; the checkout may name another compiler than elsewhere."""
    lines = _run(["rustc", "-vV"], checkout).decode().splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def _build_cli(checkout: Path) -> Path:
    """Build the command line; cargo says where it is."""
    said = _run(["cargo", "build", "--package", CLI_PACKAGE, "--message-format", "json-render-diagnostics"], checkout)
    for message in map(json.loads, said.splitlines()):
        if message.get("executable") and message["target"]["name"] == CLI:
            return Path(message["executable"])
    raise BuzzbenchError(f"{CLI_PACKAGE} made no program called {CLI}", where="cargo build")


def _run(command: Sequence[str], directory: Path, *, output: int | TextIO = subprocess.PIPE) -> bytes:
    """What it prints on standard output, unless that goes elsewhere; its standard error is shown as it comes."""
    done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, check=False)
    if done.returncode:
        raise BuzzbenchError(f"ended with {done.returncode}", where=" ".join(command[:2]))
    return done.stdout or b""


def _say(text: str) -> None:
    print(f"gui: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
