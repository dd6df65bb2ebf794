"""One command for all: installs the peers, measures everybody on one PostgreSQL, writes the table and the chart.

python benchmarks/run.py [--quick] [--ours-only] [--parts drain ticks ...]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.suite import main

if __name__ == "__main__":
    main()
