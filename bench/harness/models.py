"""A model behind the gateway: what goes to it and what comes back, whichever dialect it speaks.

There are no retries here: the gateway has the say over upstreams. What it answers is typed:

    ModelFailed        the gateway or the upstream refused or failed the call (status and message)
    GatewayUnreachable nobody answered: the infrastructure is gone
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import aiohttp
import orjson

from bench import unreachable
from bench.errors import BuzzbenchError
from bench.harness import dialects
from bench.harness.talk import Ask, Generation, Item, Reply
from bench.harness.toolspecs import Tool

type Dialect = Literal["anthropic", "openai"]

CONNECT_S = 10.0
"""To reach the gateway, on this machine. An answer has no limit here: the trial's deadline cancels the call."""

LONGEST_MESSAGE_CHARS = 600

REFUSAL_HEADER = "x-buzzbench-error"
"""Set by the gateway on the answers that are its own."""

OWN_CAP = "agent_budget"
"""Its value where a cap of the agent's own refused the call: that ends the agent's turn, and nothing else."""


class ModelFailed(BuzzbenchError):
    """The call was answered with an error. `status` is HTTP's, `kind` the dialect's type of error.

    `refusal` is the gateway's own kind (`trial_budget`, `script_mismatch`, `revoked`, …) where it answered itself, and
    empty where the answer is the upstream's.
    """

    def __init__(self, status: int, kind: str, message: str, *, refusal: str = "") -> None:
        self.status, self.kind, self.refusal = status, kind, refusal
        self.message = message[:LONGEST_MESSAGE_CHARS]
        super().__init__(f"the model call was answered with {status} {kind}: {self.message}")


class GatewayUnreachable(BuzzbenchError):
    """The gateway didn't answer."""


class Model:
    """One agent's model: its token, its dialect, its settings."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        *,
        base_url: str,
        token: str,
        dialect: Dialect,
        generation: Generation,
    ) -> None:
        self._http = http
        self._wire = dialects.WIRES[dialect]
        self._url = base_url.rstrip("/") + self._wire.path
        self._headers = {"content-type": "application/json", **self._wire.headers(token)}
        self.generation = generation

    async def complete(self, *, system: str, conversation: Sequence[Item], tools: Sequence[Tool]) -> Reply:
        """The model's answer. Raises ModelFailed or GatewayUnreachable."""
        body = orjson.dumps(self._wire.encode(Ask(self.generation, system, conversation, tools)))
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        try:
            async with self._http.post(self._url, data=body, headers=self._headers, timeout=timeout) as response:
                answer = await response.read()
                status, refusal = response.status, response.headers.get(REFUSAL_HEADER, "")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise GatewayUnreachable(f"the gateway doesn't answer: {unreachable.said(error)}") from error
        return self._read(status, refusal, answer)

    def _read(self, status: int, refusal: str, answer: bytes) -> Reply:
        try:
            parsed: Any = orjson.loads(answer)
        except orjson.JSONDecodeError:
            raise ModelFailed(status, "not_json", answer[:LONGEST_MESSAGE_CHARS].decode(errors="replace")) from None
        if status != 200:
            raise ModelFailed(status, *_error(parsed), refusal=refusal)
        try:
            return self._wire.decode(parsed)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelFailed(
                status, "unexpected_form", f"the answer has an unexpected form: {type(error).__name__} {error}"
            ) from error


def _error(parsed: Any) -> tuple[str, str]:
    """(kind, message) of an error body of either dialect: both nest them under `error`."""
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        return str(error.get("type") or error.get("code") or "error"), str(error.get("message") or error)
    return "error", str(error or parsed)
