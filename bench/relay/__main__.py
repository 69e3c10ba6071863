"""`python -m bench.relay`: the relay's process."""

import sys

from bench.garbage import loading

with loading():
    from bench.relay.process import main

if __name__ == "__main__":
    sys.exit(main())
