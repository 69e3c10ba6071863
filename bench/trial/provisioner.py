"""`provisioner.json` (row K4): what is volatile in a job, in its run directory, private. API keys are never in it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.condition import Limits
from bench.errors import InvalidInput, MachineLacks
from bench.files import make_private_directory, write_private
from bench.gateway.backoff import USUAL, Patience
from bench.keys import State
from bench.nostr import Key
from bench.places import door_dir, programs_directory
from bench.stack import StackAddress

RUN_DIR_VARIABLE = "BUZZBENCH_RUN_DIR"
FILE_NAME = "provisioner.json"
NO_LIMITS = Limits()


@dataclass(frozen=True)
class Provisioner:
    """What provisioning needs to know of the stack and of who owns the teams. Has no repr: it holds secrets."""

    relay_http_url: str
    relay_ws_url: str
    owner_secret_key: str = field(repr=False)
    user_secret_key: str = field(repr=False)
    gateway_url: str
    gateway_control: str
    agent_programs: str = ""
    """The directory of real agents' programs on this host."""
    doors: str = ""
    """The directory of the sockets that containers are given, on this host."""
    patience: Patience = USUAL
    """With upstreams in trouble."""
    budget: Limits = NO_LIMITS
    """The caps of the whole job."""

    @property
    def owner(self) -> Key:
        return Key(self.owner_secret_key)

    @property
    def user(self) -> Key:
        return Key(self.user_secret_key)


def write_provisioner(
    run_dir: Path,
    state: State,
    address: StackAddress,
    *,
    budget: Limits = NO_LIMITS,
    patience: Patience | None = None,
) -> Path:
    """Write `provisioner.json` (0600) for a job into its run directory, and return its path.

    `patience` is by default what the settings say.
    """
    from bench import settings

    found = settings.load()
    provisioner = Provisioner(
        relay_http_url="http" + address.relay_url.removeprefix("ws"),
        relay_ws_url=address.relay_url,
        owner_secret_key=state.owner.secret,
        user_secret_key=state.user.secret,
        gateway_url=address.gateway_url,
        gateway_control=address.gateway_control,
        agent_programs=str(programs_directory(found)),
        doors=str(door_dir(found.state_dir)),
        budget=budget,
        patience=patience or Patience(found.upstream_retries, longest_wait_s=found.longest_wait_s),
    )
    make_private_directory(run_dir)
    write_private(run_dir / FILE_NAME, json.dumps(asdict(provisioner), indent=2) + "\n")
    return run_dir / FILE_NAME


def load_provisioner(run_dir: Path) -> Provisioner:
    """The provisioner of a run directory. Raises InvalidInput naming the file."""
    path = run_dir / FILE_NAME
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        return Provisioner(**given | {"patience": Patience(**given["patience"]), "budget": Limits(**given["budget"])})
    except FileNotFoundError:
        raise InvalidInput.of(
            str(path), "there is no provisioner file", f"unset {RUN_DIR_VARIABLE}, or run `inv bench`"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput.of(str(path), f"damaged: {error}", "delete it; the next run writes it anew") from None


def stack_address() -> tuple[State, StackAddress]:
    """This project's identities and its running stack, for a command that was pasted. Raises MachineLacks."""
    from bench import keys, settings, stack

    found = settings.load()
    address = stack.address(found.state_dir)
    if address is None:
        raise MachineLacks.of(str(found.state_dir), "the stack is not running", "run `inv up`")
    return keys.load(found.state_dir), address


def given_run_dir() -> Path | None:
    """The run directory that the job's parent made, None for a command that was pasted."""
    given = os.environ.get(RUN_DIR_VARIABLE)
    return Path(given) if given else None


def run_dir_of(job: str) -> Path:
    """The job's run directory: the one given by the parent, else this project's own, made now. Raises MachineLacks."""
    if given := given_run_dir():
        return given
    from bench import settings

    state, address = stack_address()
    run_dir = settings.load().state_dir / "run" / job
    write_provisioner(run_dir, state, address)
    return run_dir


def check_stack() -> None:
    """See that the stack is where it should be. Raises InvalidInput or MachineLacks."""
    if given := given_run_dir():
        load_provisioner(given)
    else:
        stack_address()
