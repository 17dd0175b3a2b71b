"""Single cells of tables."""
import pandas as pd

df = pd.read_csv("data.csv")
for i in df.index:
    df.loc[i, "total"] = df.loc[i, "price"] * 2  # fault: slow-cell-write

for n in range(len(df)):
    df.iloc[n, 0] = n  # fault: slow-cell-write

for name in ["price", "count"]:
    df.loc[df[name] < 0, name] = 0

df.loc[0, "total"] = 1
df[df["price"] < 0]["total"] = 0  # fault: lost-write
df["total"][df["price"] < 0] = 0  # fault: lost-write
df.loc[df["price"] < 0]["total"] += 1  # fault: lost-write
df.loc[0, "notes"]["seen"] = True
rows = {"a": {}}
rows["a"]["b"] = 1
limits = {"price": 10, "count": 5}
for name, most in limits.items():
    df[name] = df[name].clip(upper=most)
print(df)
