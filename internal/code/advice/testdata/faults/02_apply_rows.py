"""Columns computed row by row."""
import numpy as np
import pandas as pd


def total(row):
    """The price of a line."""
    return row["price"] * row["count"]


def describe(row):
    if row["count"] > 10:
        return "many"
    return f"{row['count']} of {row['name']}"


orders = pd.read_csv("orders.csv")
orders["a"] = orders.apply(lambda row: row["price"] * row["count"], axis=1)  # fault: slow-apply-rows
orders["b"] = orders.apply(lambda r: r.price - r.rebate if r.price > 10 else r.price, axis=1)  # fault: slow-apply-rows
orders["c"] = orders.apply(total, axis=1)  # fault: slow-apply-rows
orders["d"] = orders.apply(describe, axis=1)
orders["e"] = orders.apply(lambda row: f"{row['name']} ({row['count']})", axis=1)
orders["f"] = orders[["price", "count"]].apply(np.sum, axis=1)
orders["g"] = orders.groupby("name").apply(lambda part: part["price"].max())
orders["h"] = orders.apply(lambda column: column.max() - column.min())
print(orders)
