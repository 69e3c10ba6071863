"""A service by the contract of ARCHITECTURE ("Services") and no more. `behaviour` makes it fail."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

config = json.load(sys.stdin)
behaviour = config.get("behaviour")
if behaviour == "refuse":
    sys.exit("the configuration is wrong: no such thing")
if behaviour == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(json.dumps(dict(os.environ)), file=sys.stderr, flush=True)
Path(config["ready_file"]).write_text(json.dumps({"port": 12345, "pid": os.getpid()}))
while True:
    signal.pause()
