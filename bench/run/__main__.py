"""`python -m bench.run EVENTS_FD CLAIM_FD`: the Harbor child."""

from bench.garbage import collect_seldom

collect_seldom()

from bench.run.child import main  # noqa: E402

if __name__ == "__main__":
    main()
