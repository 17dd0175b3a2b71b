# Runs each slow form beside the faster one, on data of its own, and says how long both took. Both have to give the same result.
import collections, itertools, random, time


def table(n):
    import numpy as np, pandas as pd
    r = np.random.default_rng(1)
    return pd.DataFrame({"price": r.random(n) * 100, "count": r.integers(1, 9, n), "name": [f"  Item {i % 97} " for i in range(n)], "group": r.integers(0, 200, n)})


def iterrows_slow(df):
    total = 0.0
    for _, row in df.iterrows():
        total += row["price"] * row["count"]
    return total


def itertuples_slow(df):
    total = 0.0
    for row in df.itertuples():
        total += row.price * row[2]
    return total


def product_fast(df):
    return float((df["price"] * df["count"]).sum())


def apply_rows_slow(df):
    return df.apply(lambda row: row["price"] * row["count"], axis=1)


def apply_rows_fast(df):
    return df["price"] * df["count"]


def apply_values_slow(df):
    return df["price"].apply(lambda x: x * 2 + 1)


def apply_values_fast(df):
    return df["price"] * 2 + 1


def apply_text_slow(df):
    return df["name"].apply(lambda s: s.strip())


def apply_text_fast(df):
    return df["name"].str.strip()


def concat_slow(parts):
    import pandas as pd
    out = parts[0]
    for part in parts[1:]:
        out = pd.concat([out, part])
    return out


def concat_fast(parts):
    import pandas as pd
    return pd.concat(parts)


def array_append_slow(values):
    import numpy as np
    out = np.array([], dtype=float)
    for v in values:
        out = np.append(out, v * 2)
    return out


def array_append_fast(values):
    import numpy as np
    return np.array([v * 2 for v in values], dtype=float)


def cell_write_slow(df):
    df = df.copy()
    df["total"] = 0.0
    for i in df.index:
        df.loc[i, "total"] = df.loc[i, "price"] * 2
    return df


def cell_write_fast(df):
    df = df.copy()
    df["total"] = df["price"] * 2
    return df


def array_loop_slow(a):
    total = 0.0
    for x in a:
        total += x * x
    return total


def array_loop_fast(a):
    return float((a * a).sum())


def groups_slow(df):
    out = {}
    for g in df["group"].unique():
        part = df[df["group"] == g]
        out[int(g)] = float(part["price"].max())
    return out


def groups_fast(df):
    return {int(g): float(part["price"].max()) for g, part in df.groupby("group")}


def list_search_slow(args):
    known, wanted = args
    return sum(1 for w in wanted if w in known)


def list_search_fast(args):
    known, wanted = set(args[0]), args[1]
    return sum(1 for w in wanted if w in known)


def list_grown_slow(values):
    seen = []
    for v in values:
        if v not in seen:
            seen.append(v)
    return seen


def list_grown_fast(values):
    seen, known = [], set()
    for v in values:
        if v not in known:
            known.add(v)
            seen.append(v)
    return seen


def list_front_slow(n):
    queue, total = list(range(n)), 0
    while queue:
        total += queue.pop(0)
    return total


def list_front_fast(n):
    queue, total = collections.deque(range(n)), 0
    while queue:
        total += queue.popleft()
    return total


def sort_slow(values):
    out = []
    for v in values:
        out.append(v)
        out.sort()
    return out


def sort_fast(values):
    out = []
    for v in values:
        out.append(v)
    out.sort()
    return out


def text_slow(n):
    text = ""
    for i in range(n):
        text = text + str(i) + ","
    return text


def text_fast(n):
    pieces = []
    for i in range(n):
        pieces.append(str(i))
        pieces.append(",")
    return "".join(pieces)


def list_sum_slow(lists):
    return sum(lists, [])


def list_sum_fast(lists):
    return list(itertools.chain.from_iterable(lists))


def numbers(n):
    r = random.Random(1)
    return [r.random() for _ in range(n)]


def array(n):
    import numpy as np
    return np.random.default_rng(1).random(n)


# The rule: how the data is made, the slow form and the fast one, and how many rows, elements or turns.
PAIRS = {
    "slow-iterrows": (table, iterrows_slow, product_fast, 5000),
    "slow-itertuples": (table, itertuples_slow, product_fast, 50000),
    "slow-apply-rows": (table, apply_rows_slow, apply_rows_fast, 5000),
    "slow-apply-values": (table, apply_values_slow, apply_values_fast, 100000),
    "slow-apply-text": (table, apply_text_slow, apply_text_fast, 100000),
    "slow-concat-in-loop": (lambda n: [table(20) for _ in range(n)], concat_slow, concat_fast, 300),
    "slow-array-append": (numbers, array_append_slow, array_append_fast, 10000),
    "slow-cell-write": (table, cell_write_slow, cell_write_fast, 1000),
    "slow-array-loop": (array, array_loop_slow, array_loop_fast, 300000),
    "slow-filter-per-group": (table, groups_slow, groups_fast, 100000),
    "slow-list-search": (lambda n: (list(range(n)), list(range(0, 2 * n, 2))), list_search_slow, list_search_fast, 3000),
    "slow-list-grown": (lambda n: list(range(n)), list_grown_slow, list_grown_fast, 3000),
    "slow-list-front": (int, list_front_slow, list_front_fast, 100000),
    "slow-sort-in-loop": (numbers, sort_slow, sort_fast, 3000),
    "slow-string-building": (int, text_slow, text_fast, 30000),
    "slow-list-sum": (lambda n: [[i, i + 1] for i in range(n)], list_sum_slow, list_sum_fast, 4000),
}


def same(a, b):
    import numpy as np, pandas as pd
    if isinstance(a, (pd.DataFrame, pd.Series)):
        return type(a) is type(b) and bool(np.all([x == y for x, y in zip(a.to_numpy().ravel().tolist(), b.to_numpy().ravel().tolist())])) and a.shape == b.shape
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and bool(np.allclose(a, b))
    if isinstance(a, float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return a == b


def best(f, data, times):
    least, result = None, None
    for _ in range(times):
        start = time.perf_counter()
        result = f(data)
        took = time.perf_counter() - start
        least = took if least is None else min(least, took)
    return least, result


def measure():
    for rule in TASK["rules"]:
        if rule not in PAIRS:
            continue
        make, slow, fast, n = PAIRS[rule]
        data = make(n)
        fast(make(min(n, 100)))  # what is imported and set up at the first use belongs to neither
        slow_time, slow_result = best(slow, data, 2)
        fast_time, fast_result = best(fast, data, 5)
        emit("measured", rule=rule, slow=slow_time, fast=fast_time, size=n, same=bool(same(slow_result, fast_result)))


measure()
