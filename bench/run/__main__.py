"""`python -m bench.run EVENTS_FD`: the Harbor child."""

from bench.run.child import main

if __name__ == "__main__":
    main()
