"""Revenue by row, with and without a loop."""
import pandas as pd

sales = pd.read_csv("sales.csv")

revenue = 0.0
for _, row in sales.iterrows():  # fault: slow-iterrows
    revenue += row["price"] * row["count"]

for number, (_, row) in enumerate(sales.iterrows()):  # fault: slow-iterrows
    print(number, row["name"])

for row in sales.itertuples():  # fault: slow-itertuples
    revenue -= row.discount * 2

for row in sales.itertuples():
    print(row.name, file=open(f"{row.name}.txt", "w"))

best = None
for row in sales.itertuples():
    if best is None or row.price > best.price:
        best = row

for name, column in sales.items():
    print(name, column.mean())
print(revenue, best)
