"""An analysis without faults: all that is found here is a false alarm."""
from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd


def load(path: Path) -> pd.DataFrame:
    """Load a table of sales."""
    df = pd.read_csv(path, parse_dates=["day"])
    df["month"] = df["day"].dt.to_period("M")
    return df.dropna(subset=["price"])


def summary(df: pd.DataFrame) -> pd.DataFrame:
    grouped = df.groupby(["month", "region"], as_index=False).agg(total=("price", "sum"), n=("price", "size"))
    grouped["mean"] = grouped["total"] / grouped["n"]
    return grouped.sort_values("total", ascending=False)


def words(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word in text.lower().split():
        counts[word.strip(".,")] += 1
    return counts


def read_rows(path: Path) -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    with path.open(newline="") as f:
        for row in csv.DictReader(f):
            found[row["name"]].append(float(row["value"]))
    return dict(found)


def plot(df: pd.DataFrame, out: Path) -> None:
    fig, ax = plt.subplots()
    for region, part in df.groupby("region"):
        ax.plot(part["month"].astype(str), part["total"], label=region)
    for bar, value in zip(ax.patches, df["total"]):
        ax.annotate(f"{value:.0f}", (bar.get_x(), value))
    ax.legend()
    fig.savefig(out)


def fixed_point(start: float, rounds: int = 100) -> float:
    x = start
    for _ in range(rounds):
        x = np.cos(x)
    return float(x)


def newton(values: np.ndarray) -> list[float]:
    roots = []
    for v in values:
        guess = v / 2
        for _ in range(20):
            guess = 0.5 * (guess + v / guess)
        roots.append(float(guess))
    return roots


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    args = parser.parse_args()
    df = load(args.path)
    best = summary(df)
    for row in best.itertuples():
        print(f"{row.month}: {row.total}")
    plot(best, Path("out.png"))
    print(words("a b a"), fixed_point(1.0), newton(np.array([1.0, 2.0])), read_rows(args.path))


if __name__ == "__main__":
    main()
