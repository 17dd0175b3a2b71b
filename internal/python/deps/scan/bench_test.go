package scan_test

import (
	"strings"
	"testing"

	"cove/internal/python/deps/scan"
)

// program is about what a model writes for one step, some kilobytes, with nothing in it that is missing.
const program = `"""Read sales, find the region that grew most, and plot it."""
import json
import os
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

# Load the data and import what is needed for the analysis.
df = pd.read_csv("sales.csv", parse_dates=["date"])
df["year"] = df["date"].dt.year
totals = df.groupby(["region", "year"])["amount"].sum().unstack()
growth = (totals[2025] - totals[2024]) / totals[2024] * 100
best = growth.sort_values(ascending=False).index[0]
print(f"最快增长的地区：{best}，增长 {growth[best]:.1f}%")
for region, value in growth.items():
    if np.isnan(value):
        continue
    print(region, round(value, 2))
fig, ax = plt.subplots(figsize=(8, 4))
growth.sort_values().plot.barh(ax=ax, color="steelblue")
ax.set_xlabel("growth (%)")
plt.tight_layout()
plt.savefig("growth.png")
`

func BenchmarkSuspect10KB(b *testing.B) {
	code := strings.Repeat(program, 10<<10/len(program)+1)[:10<<10]
	installed := map[string]bool{"json": true, "os": true, "collections": true, "matplotlib": true, "numpy": true, "pandas": true}
	there := func(root string) bool { return installed[root] }
	if scan.Suspect(code, there) {
		b.Fatal("suspected")
	}
	b.SetBytes(int64(len(code)))
	for b.Loop() {
		scan.Suspect(code, there)
	}
}

func BenchmarkScan(b *testing.B) {
	_, s := startLocal(b)
	look(b, s, scan.Code{Text: program})
	for b.Loop() {
		look(b, s, scan.Code{Text: program})
	}
}
