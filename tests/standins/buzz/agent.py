"""buzz-agent: ACP on its standard streams, a model over HTTP, tools from an MCP server (BUZZ.md sections 4 and 5)."""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import time
from urllib.parse import urlsplit

KEPT = (
    *("PATH", "HOME", "TERM", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "NOSTR_PRIVATE_KEY", "BUZZ_PRIVATE_KEY"),
    *("BUZZ_RELAY_URL", "BUZZ_AUTH_TAG", "BUZZ_ACP_DISPLAY_NAME"),
)
"""What passes to the MCP server of this process's own environment."""

ATTEMPTS = 3


class Failed(Exception):
    """A turn failed: (JSON-RPC code, message)."""


def send(frame):
    print(json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False), flush=True)


def main() -> int:
    provider = os.environ.get("BUZZ_AGENT_PROVIDER")
    if provider not in ("anthropic", "openai"):
        print("BUZZ_AGENT_PROVIDER is required", file=sys.stderr)
        return 2
    sessions = {}
    for line in sys.stdin:
        asked = json.loads(line)
        method, number = asked.get("method"), asked.get("id")
        if method == "initialize":
            send({"id": number, "result": {"protocolVersion": 2, "agentCapabilities": {}}})
        elif method == "session/new":
            name = f"ses_{os.urandom(8).hex()}"
            sessions[name] = Session(name, provider, asked["params"])
            model = os.environ["BUZZ_AGENT_MODEL"]
            known = {"currentModelId": model, "availableModels": [{"modelId": model, "name": model}]}
            send({"id": number, "result": {"sessionId": name, "models": known}})
        elif method == "session/prompt":
            session = sessions[asked["params"]["sessionId"]]
            try:
                text = "\n".join(part["text"] for part in asked["params"]["prompt"])
                answer = {"result": {"stopReason": session.turn(text)}}
            except Failed as error:
                answer = {"error": {"code": error.args[0], "message": error.args[1]}}
            session.tell_usage()
            send({"id": number, **answer})
    return 0


class Session:
    """One conversation."""

    def __init__(self, name, provider, params):
        self.name, self.anthropic = name, provider == "anthropic"
        self.system = params.get("systemPrompt") or ""
        self.messages = []
        self.used = {"accumulatedInputTokens": 0, "accumulatedOutputTokens": 0, "accumulatedCachedInputTokens": 0}
        self.used_in_turn = False
        (server,) = params["mcpServers"]
        passed = {key: os.environ[key] for key in KEPT if key in os.environ}
        passed |= {each["name"]: each["value"] for each in server["env"]}
        self.server = server["name"]
        self.mcp = subprocess.Popen(
            [server["command"], *server["args"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=params["cwd"],
            env=passed,
            process_group=0,
        )
        self._numbers = iter(range(1, 10**9))
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        self.tools = self.ask("tools/list", {})["tools"]

    def ask(self, method, params):
        frame = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        self.mcp.stdin.write(json.dumps(frame).encode() + b"\n")
        self.mcp.stdin.flush()
        return json.loads(self.mcp.stdout.readline())["result"]

    def update(self, update):
        send({"method": "session/update", "params": {"sessionId": self.name, "update": update}})

    def tell_usage(self):
        """Where the turn saw any: after each call, and once more at its end, however it ended."""
        if self.used_in_turn:
            spent = self.used["accumulatedInputTokens"] + self.used["accumulatedOutputTokens"]
            update = {"sessionUpdate": "usage_update", "used": spent, "contextLimit": 0, **self.used}
            update["model"] = os.environ["BUZZ_AGENT_MODEL"]
            send({"method": "_goose/unstable/session/update", "params": {"sessionId": self.name, "update": update}})

    def turn(self, text):
        self.used_in_turn = False
        run = {"goose": {"activeRunId": f"run_{os.urandom(8).hex()}"}}
        self.update({"sessionUpdate": "session_info_update", "_meta": run})
        content = [{"type": "text", "text": text}] if self.anthropic else text
        self.messages.append({"role": "user", "content": content})
        while True:
            said, calls = self.complete()
            self.tell_usage()
            if said:
                self.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": said}})
            if not calls:
                return "end_turn"
            for identity, name, given in calls:
                call = {"toolCallId": identity, "title": name, "kind": "other", "status": "pending", "rawInput": given}
                self.update({"sessionUpdate": "tool_call", **call})
            # buzz-agent's order is that in which its tasks win a semaphore. This is the worst for who relies on one.
            results = {call[0]: self.carry_out(*call) for call in reversed(calls)}
            if self.anthropic:
                blocks = [
                    {
                        "type": "tool_result",
                        "tool_use_id": call[0],
                        "content": [{"type": "text", "text": results[call[0]]}],
                    }
                    for call in calls
                ]
                self.messages.append({"role": "user", "content": blocks})
            else:
                self.messages += [
                    {"role": "tool", "tool_call_id": call[0], "content": results[call[0]]} for call in calls
                ]

    def carry_out(self, identity, name, given):
        head = {"sessionUpdate": "tool_call_update", "toolCallId": identity}
        bare = name.removeprefix(f"{self.server}__")
        if bare not in [tool["name"] for tool in self.tools]:
            self.update({**head, "status": "failed", "rawOutput": {"error": f"unknown tool: {name}"}})
            return f"unknown tool: {name}"
        self.update({**head, "status": "in_progress"})
        answer = self.ask("tools/call", {"name": bare, "arguments": given})
        result, failed = answer["content"][0]["text"], answer.get("isError", False)
        shown = [{"type": "content", "content": {"type": "text", "text": result}}]
        self.update({**head, "status": "completed", "content": shown, "rawOutput": {"isError": failed}})
        return result

    def complete(self):
        """(text, [(id, name, input)]) of the model's answer."""
        answer = self.post(*self.request())
        self.count(answer.get("usage") or {})
        if self.anthropic:
            self.messages.append({"role": "assistant", "content": answer["content"]})
            text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
            uses = [block for block in answer["content"] if block["type"] == "tool_use"]
            return text, [(use["id"], use["name"], use["input"]) for use in uses]
        message = answer["choices"][0]["message"]
        uses = message.get("tool_calls") or []
        self.messages.append({"role": "assistant", "content": message.get("content") or "", "tool_calls": uses})
        return message.get("content") or "", [
            (use["id"], use["function"]["name"], json.loads(use["function"]["arguments"])) for use in uses
        ]

    def count(self, usage):
        """Add a call up: the input counts what was read from and written to a cache."""
        self.used_in_turn = self.used_in_turn or bool(usage)
        read, written = usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0
        if self.anthropic:
            shown, said = (usage.get("input_tokens") or 0) + read + written, usage.get("output_tokens") or 0
        else:
            shown, said = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
            read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        self.used["accumulatedInputTokens"] += shown
        self.used["accumulatedOutputTokens"] += said
        self.used["accumulatedCachedInputTokens"] += read

    def request(self):
        limit = int(os.environ.get("BUZZ_AGENT_MAX_OUTPUT_TOKENS", "32768"))
        model = os.environ["BUZZ_AGENT_MODEL"]
        effort = os.environ.get("BUZZ_AGENT_THINKING_EFFORT")
        named = [(f"{self.server}__{tool['name']}", tool) for tool in self.tools]
        if self.anthropic:
            cached = {"cache_control": {"type": "ephemeral"}}
            messages = [
                {**message, "content": [dict(block) for block in message["content"]]} for message in self.messages
            ]
            for message in messages[-2:]:
                message["content"][-1] |= cached
            body = {
                "model": model,
                "max_tokens": limit,
                "system": [{"type": "text", "text": self.system, **cached}],
                "messages": messages,
                "tools": [
                    {"name": name, "description": tool["description"], "input_schema": tool["inputSchema"]}
                    for name, tool in named
                ],
            }
            key = os.environ["ANTHROPIC_API_KEY"]
            headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
            return os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, headers
        body = {
            "model": model,
            "stream": False,
            "max_completion_tokens": limit,
            "messages": [{"role": "system", "content": self.system}, *self.messages],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": name,
                        "description": tool["description"],
                        "parameters": tool["inputSchema"],
                    },
                }
                for name, tool in named
            ],
            "tool_choice": "auto",
        }
        if effort:
            body["reasoning_effort"] = effort
        headers = {"authorization": f"Bearer {os.environ['OPENAI_COMPAT_API_KEY']}"}
        return os.environ["OPENAI_COMPAT_BASE_URL"] + "/chat/completions", body, headers

    def post(self, url, body, headers):
        parts = urlsplit(url)
        data = json.dumps(body).encode()
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0.25, 0.5) * attempt)
            try:
                connection = http.client.HTTPConnection(parts.netloc, timeout=240)
                connection.request(
                    "POST", parts.path, data, {"content-type": "application/json", "accept": "*/*", **headers}
                )
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                status, text = 0, str(error).encode()
            else:
                status = answer.status
                connection.close()
            if status == 200:
                return json.loads(text)
            print(f"ERROR buzz_agent: llm call failed: {status} {text[:200]!r}", file=sys.stderr, flush=True)
            if 400 <= status < 500 and status not in (429, 499):
                break
        said = text[:200].decode(errors="replace")
        raise Failed(-32001, f"llm auth: {said}") if status in (401, 403) else Failed(-32000, f"llm: {status} {said}")
