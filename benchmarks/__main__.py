"""``python -m benchmarks [NAME …]`` runs these benchmarks, or all of them."""

import importlib
import sys

NAMES = ("node", "graphs", "neighgen", "limit", "growth", "workers", "late", "footprint")

if __name__ == "__main__":
    wanted, sys.argv[1:] = sys.argv[1:] or NAMES, []
    if unknown := [name for name in wanted if name not in NAMES]:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    for name in wanted:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
