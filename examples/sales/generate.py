"""Writes sales.csv: two years of a small company's sales. The numbers are made up; the same seed gives the same file."""

import csv
import datetime
import math
import random

SEED = 20250101
ROWS = 1500
REGIONS = {  # share of orders, growth over two years
    "North": (0.27, 0.06),
    "South": (0.22, 0.34),
    "East": (0.24, -0.08),
    "West": (0.18, 0.15),
    "Overseas": (0.09, 0.21),
}
PRODUCTS = {  # unit price, usual order size
    "Desk lamp": (39.90, 6),
    "Office chair": (189.00, 3),
    "Standing desk": (449.00, 2),
    "Monitor arm": (79.50, 5),
    "Keyboard": (64.00, 8),
}
START = datetime.date(2024, 1, 1)
DAYS = 731


def order(rng):
    day = rng.randrange(DAYS)
    date = START + datetime.timedelta(days=day)
    weights = [share * (1 + growth * (day / DAYS - 0.5) * 2) for share, growth in REGIONS.values()]
    region = rng.choices(list(REGIONS), weights)[0]
    product = rng.choice(list(PRODUCTS))
    price, size = PRODUCTS[product]
    season = 1 + 0.25 * math.sin((date.timetuple().tm_yday / 365 - 0.2) * 2 * math.pi)
    growth = 1 + REGIONS[region][1] * day / DAYS
    units = max(1, round(rng.gauss(size * season * growth, size * 0.35)))
    discount = rng.choice([0, 0, 0, 0.05, 0.1])
    return [date.isoformat(), region, product, units, f"{price:.2f}", f"{discount:.2f}", f"{units * price * (1 - discount):.2f}"]


def main():
    rng = random.Random(SEED)
    rows = sorted(order(rng) for _ in range(ROWS))
    with open("sales.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["date", "region", "product", "units", "unit_price", "discount", "revenue"])
        out.writerows(rows)


main()
