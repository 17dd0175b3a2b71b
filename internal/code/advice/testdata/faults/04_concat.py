"""Tables that grow in loops."""
import glob

import pandas as pd

everything = pd.DataFrame()
for name in glob.glob("*.csv"):
    part = pd.read_csv(name)
    everything = pd.concat([everything, part])  # fault: slow-concat-in-loop

rows = pd.DataFrame(columns=["n", "square"])
for n in range(100):
    rows.loc[len(rows)] = [n, n * n]  # fault: slow-concat-in-loop

old = pd.DataFrame()
for n in range(10):
    old = old.append({"n": n}, ignore_index=True)  # fault: slow-concat-in-loop

parts = []
for name in glob.glob("*.csv"):
    part = pd.read_csv(name)
    part = pd.concat([part, rows.head(1)])
    parts.append(part)
whole = pd.concat(parts)
print(everything, rows, old, whole)
