"""How a team's work ended, and whose doing it was. Pure.

What the team brought on itself (its time, its budget, its loops) is judged with a label. What the host can prove to be
the infrastructure's is a fault: the trial has no score.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.channel import RelayGone, RelayRefused
from bench.errors import BuzzbenchError
from bench.gateway.client import GatewayError
from bench.gateway.protocol import Notice
from bench.harness.bounds import TeamEnded
from bench.harness.buzz.failures import AgentsNotReady, EnvironmentGone, InstallFailed
from bench.harness.models import GatewayUnreachable, ModelFailed
from bench.harness.taskskills import SkillsMissing
from bench.scoring.outcome import Fault
from bench.trial.environments import ContainerGone, EngineGone, EnvironmentUnusable
from bench.trial.provision import ProvisioningFailed

LABELS = {
    "deadline": "agent_timeout",
    "budget": "budget",
    "loop": "loop",
    "agents_died": "agents_died",
    "environment_lost": "environment_lost",
}
"""The label of an end that is the team's own doing."""

FATAL_NOTICES = frozenset(
    {
        *("script_mismatch", "script_exhausted", "replay_miss", "gateway_lost", "receipts_failed"),
        *("upstream_refused", "upstream_limit"),
    }
)
"""The others come to the agent as the answer of its call, too, and an agent may survive them."""


NOT_AS_WRITTEN = frozenset({"script_mismatch", "script_exhausted", "replay_miss"})


@dataclass(frozen=True)
class End:
    """`ended` is ARCHITECTURE's word, `reason` one line for people."""

    ended: str
    reason: str = ""
    fault: Fault | None = None

    @property
    def is_of_script(self) -> bool:
        """Whether a script of the scripted model didn't fit, or a recording."""
        return self.fault is not None and self.fault.kind in NOT_AS_WRITTEN

    @property
    def message(self) -> str:
        """Of a fault: what Harbor is told."""
        assert self.fault is not None
        return f"{self.fault.kind}: {self.fault.reason}"

    @property
    def labels(self) -> tuple[str, ...]:
        return (LABELS[self.ended],) if self.ended in LABELS else ()


def fault(kind: str, reason: str) -> End:
    """An end that is nobody's failure but the infrastructure's."""
    return End("fault", reason, Fault(kind, reason))


def of_notice(notice: Notice) -> End | None:
    """The end that a notice of the gateway means, None where the trial goes on."""
    if notice.kind in ("trial_budget", "job_budget"):
        return _of_budget(notice.kind, f"Buzzbench budget: {notice.reason}")
    if notice.kind not in FATAL_NOTICES:
        return None
    who = f"{notice.agent}: " if notice.agent else ""
    return fault(notice.kind, f"{who}{notice.reason}")


def of_error(error: BaseException) -> End:
    """The end that an exception of an agent, of the relay or of provisioning means."""
    match error:
        case TeamEnded():
            return End(error.kind, error.reason)
        case ModelFailed():
            return _of_model(error)
        case GatewayUnreachable() | GatewayError():
            return fault("gateway_lost", str(error))
        case RelayGone():
            return fault("relay_gone", str(error))
        case AgentsNotReady() | InstallFailed():
            return fault("agents_not_ready", str(error))
        case EnvironmentGone():
            # Only what agents have had control of is called so.
            return End("environment_lost", str(error))
        case RelayRefused() | ProvisioningFailed():
            return fault("provisioning", str(error))
        case EngineGone():
            return fault("engine_gone", str(error))
        case ContainerGone():
            return fault("container_gone", str(error))
        case EnvironmentUnusable() | SkillsMissing():
            return fault("environment_unusable", str(error))
        case BuzzbenchError():
            return fault("setup", str(error))
        case _:
            return fault("internal", f"{type(error).__name__}: {error}")


def _of_budget(kind: str, message: str) -> End:
    """The whole job's cap is not this team's doing."""
    return fault(kind, message) if kind == "job_budget" else End("budget", message)


def _of_model(error: ModelFailed) -> End:
    match error.refusal, error.status:
        case (("trial_budget" | "job_budget"), _):
            return _of_budget(error.refusal, error.message)
        case (("script_mismatch" | "script_exhausted" | "replay_miss"), _):
            return fault(error.refusal, error.message.removeprefix(f"{error.refusal}: "))
        case (("upstream_refused" | "upstream_limit"), _):
            return fault(error.refusal, error.message)
        case "upstream", _:
            return fault("upstream_failed", error.message)
        case "", 401 | 402 | 403:
            return fault("upstream_refused", f"the upstream answered {error.status}: {error.message}")
        case "", status if status == 429 or status >= 500 or status == 200:
            return fault("upstream_failed", f"the upstream answered {error.status}: {error.message}")
        case "", _:
            return fault("upstream_rejected", f"the upstream answered {error.status}: {error.message}")
        case _:
            return fault("gateway_refused", f"{error.refusal}: {error.message}")
