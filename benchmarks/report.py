"""From what was measured to what README shows: one Markdown file, one chart as PNG and SVG.

Every figure is a median with the least and the most beside it; a cell is empty where a contender took no part.
"""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders import BARE, TICKS, WORKER, Contender
from benchmarks.noise import noise_sentence

Results = dict[str, dict[str, list[dict[str, Any]]]]
RATES = (
    ("single", "enqueue, one by one"),
    ("bulk", "enqueue in bulk"),
    ("drain 1", "drain, 1 process"),
    ("drain 4", "drain, 4 processes"),
    ("empty", "drain of few, empty table"),
    ("full", "the same beside history"),
    ("snapshot", "drain under an old snapshot"),
)
COSTS = (
    ("start", "start to first job, s", "{:.2f}"),
    ("peak", "peak memory, MB", "{:.0f}"),
    ("wal", "WAL, bytes a job", "{:.0f}"),
    ("commits", "commits a job", "{:.4f}"),
    ("worker_cpu", "CPU of the worker, us a job", "{:.0f}"),
    ("server_cpu", "CPU of PostgreSQL, us a job", "{:.0f}"),
)
OUR_COLOUR, PEER_COLOUR, LIMIT_COLOUR = "#2a6f97", "#b8c4cc", "#e9c46a"


def write_report(folder: Path, results: Results, contenders: Sequence[Contender], notes: Sequence[str]) -> None:
    """Write speed.md, speed.png and speed.svg into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    how = (
        f"Measured {time.strftime('%Y-%m-%d')} with `python benchmarks/run.py`: one PostgreSQL 18, fsync and "
        "synchronous_commit on, rounds interleaved in random order. Jobs a second, median (least..most); a job counts "
        "when it is durably finished."
    )
    parts = [
        "# Speed",
        how,
        rates_table(results, contenders),
        costs_table(results, contenders),
        ratios(results),
        ticks_table(results),
        settings_table(contenders),
        *notes,
        noise_sentence([found for part in results.values() for runs in part.values() for found in runs]),
    ]
    (folder / "speed.md").write_text("\n\n".join(part for part in parts if part) + "\n")
    if "drain 1" in results:
        draw(folder, results, contenders)


def median(results: Results, part: str, name: str, key: str = "rate") -> float | None:
    """Return the median of one figure, None when it was not measured."""
    values = [found[key] for found in results.get(part, {}).get(name, []) if key in found]
    return statistics.median(values) if values else None


def rates_table(results: Results, contenders: Sequence[Contender]) -> str:
    """Return jobs a second, one row a contender."""
    shown = [(part, title) for part, title in RATES if part in results]
    rows = [["", *(title for _, title in shown)]]
    rows += [[c.name, *(_spread(results, part, c.name) for part, _ in shown)] for c in contenders]
    return as_table(rows)


def _spread(results: Results, part: str, name: str) -> str:
    values = sorted(found["rate"] for found in results.get(part, {}).get(name, []))
    if not values:
        return ""
    return f"{statistics.median(values):,.0f} ({values[0]:,.0f}..{values[-1]:,.0f})"


def costs_table(results: Results, contenders: Sequence[Contender]) -> str:
    """Return what a drain with one process costs."""
    if "drain 1" not in results:
        return ""
    rows = [["drain, 1 process", *(title for _, title, _ in COSTS)]]
    rows += [[c.name, *(_cost(results, c.name, key, form) for key, _, form in COSTS)] for c in contenders]
    return as_table(rows)


def _cost(results: Results, name: str, key: str, form: str) -> str:
    found = median(results, "drain 1", name, key)
    return "" if found is None else form.format(found)


def ratios(results: Results) -> str:
    """Return how we stand to each contender, pair by pair of a round, and what was kept as the table grew."""
    rows = [["Dormouse's worker against", "drain, 1 process", "drain, 4 processes", "bulk enqueue"]]
    others = [name for name in results.get("drain 1", {}) if name not in (WORKER, TICKS)]
    rows += [[name, *(_ratio(results, part, name) for part in ("drain 1", "drain 4", "bulk"))] for name in others]
    kept = [["kept of its speed", "beside history", "last fifth under an old snapshot"]]
    for name in results.get("full", results.get("snapshot", {})):
        history = _share(median(results, "full", name), median(results, "empty", name))
        last = _share(median(results, "snapshot", name, "last"), median(results, "snapshot", name, "first"))
        kept.append([name, history, last])
    return "\n\n".join(as_table(table) for table in (rows, kept) if len(table) > 1)


def _ratio(results: Results, part: str, name: str) -> str:
    ours, theirs = results.get(part, {}).get(WORKER, []), results.get(part, {}).get(name, [])
    pairs = [a["rate"] / b["rate"] for a, b in zip(ours, theirs, strict=False) if b["rate"]]
    return f"{statistics.median(pairs):.2f} x" if pairs else ""


def _share(part: float | None, whole: float | None) -> str:
    return f"{100 * part / whole:.0f} %" if part and whole else ""


def ticks_table(results: Results) -> str:
    """Return what ticks cost over HTTP."""
    if "ticks" not in results:
        return ""
    rows = [["tick over loopback HTTP, warm", "round trips", "handlers' included", "p50 ms", "bare route ms", "ratio"]]
    awake = ""
    for name, figures in results["ticks"].items():
        found = figures[-1]
        if "awake_s" in found:
            awake = (
                f"Awake for {name} jobs at JOB_CONCURRENCY=100: {found['awake_s']:.2f} s in {found['ticks']:.0f} "
                f"tick(s); the handlers alone need {found['ideal_s']:.1f} s."
            )
            continue
        bare = found.get("bare_ms")
        rows.append(
            [
                name,
                f"{found['trips']:.0f}",
                f"{found['all_trips']:.0f}" if "all_trips" in found else "",
                f"{found['p50_ms']:.1f}",
                f"{bare:.1f}" if bare else "",
                f"{found['p50_ms'] / bare:.2f} x" if bare else "",
            ]
        )
    return as_table(rows) + f"\n\n{awake}"


def settings_table(contenders: Sequence[Contender]) -> str:
    """Return at which settings each ran."""
    rows = [["", "version", "settings"]]
    rows += [[contender.name, contender.version, contender.settings] for contender in contenders]
    return as_table(rows)


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return *rows*, the first of them the head, as a Markdown table."""
    head, *body = rows
    ruler = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *body))


def draw(folder: Path, results: Results, contenders: Sequence[Contender]) -> None:
    """Draw the drains as bars."""
    import matplotlib as mpl  # noqa: PLC0415 - the tests of the parts need no chart

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - the same

    mpl.rcParams["svg.hashsalt"] = "dormouse"
    parts = [(part, title) for part, title in RATES if part in ("drain 1", "drain 4", "full") and part in results]
    figure, axes = plt.subplots(1, len(parts), figsize=(3.6 * len(parts), 3.2), sharey=True, squeeze=False)
    names = [contender.name for contender in reversed(contenders)]
    for axis, (part, title) in zip(axes[0], parts, strict=True):
        rates = [median(results, part, name) or 0.0 for name in names]
        bars = axis.barh(names, rates, color=[_colour(name) for name in names])
        axis.bar_label(bars, [f"{rate:,.0f}" if rate else "" for rate in rates], padding=2, fontsize=7)
        axis.set_title(title, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.set_xlim(0, max(rates) * 1.25)
        axis.xaxis.set_visible(False)
        axis.spines[["top", "right", "bottom"]].set_visible(False)
    figure.suptitle("Jobs a second, durably finished", fontsize=10)
    figure.tight_layout()
    figure.savefig(folder / "speed.png", dpi=110)
    figure.savefig(folder / "speed.svg", metadata={"Date": None})


def _colour(name: str) -> str:
    return OUR_COLOUR if name in (WORKER, TICKS) else LIMIT_COLOUR if name == BARE else PEER_COLOUR
