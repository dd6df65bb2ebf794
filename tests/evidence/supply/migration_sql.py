"""Writes the migrations as they are sent to a database, one file a step: `migration_sql.py FOLDER`.

What a first installation brings meets empty tables, and is one file. Every later step meets tables with rows, and is a
file of its own: there an index that is not built concurrently, or a column that rewrites the table, is a finding.
"""

import sys
from pathlib import Path

from app.migrate import BEGIN_LOCKED, HEAD, _revisions, write_sql

FIRST = "0003"


def write_all(folder: Path) -> list[Path]:
    """Write the files and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    later = [revision for revision in _revisions() if FIRST < revision <= HEAD]
    steps = [(None, FIRST), *zip([FIRST, *later], later, strict=False)]
    written = []
    for version, target in steps:
        path = folder / f"{target}.sql"
        path.write_text(f"{BEGIN_LOCKED.rstrip()};\n{write_sql(version, target)}\nCOMMIT;\n")
        written.append(path)
    return written


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
