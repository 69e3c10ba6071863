"""Is the export whole, and in whose name was each run? Standard library only."""

from collections.abc import Callable

REGISTER = "Aurora,118 Kestrel,64 Brandgans,207 Tern,31 Meridian,159 Solveig,93 Halcyon,146"


def checks(read: Callable[[str], str | None]) -> dict[str, bool]:
    return {
        "export.csv holds the whole register": (read("export.csv") or "").split() == REGISTER.split(),
        "the run that broke off was in the name of worker-1": (read("export.broken") or "").strip() == "worker-1",
        "the run that went on was in the name of worker-2": (read("export.whole") or "").strip() == "worker-2",
    }
