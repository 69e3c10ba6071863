"""`python -m bench.gateway`: the gateway's process."""

import sys

from bench.garbage import loading

with loading():
    from bench.gateway.process import main

if __name__ == "__main__":
    sys.exit(main())
