"""One part of a table after the other."""
import pandas as pd

df = pd.read_csv("data.csv")
means = {}
for town in df["town"].unique():
    part = df[df["town"] == town]  # fault: slow-filter-per-group
    means[town] = part["price"].mean()

for kind in sorted(df.kind.unique()):
    print(kind, len(df.loc[df.kind == kind]))  # fault: slow-filter-per-group

for town, part in df.groupby("town"):
    print(town, part["price"].max())

other = pd.read_csv("other.csv")
for town in df["town"].unique():
    print(other[other["place"] == town])
print(means)
