"""``python -m benchmarks`` runs every benchmark."""

from benchmarks.node import main

if __name__ == "__main__":
    main()
