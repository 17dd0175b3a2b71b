# What a template has done before its first user comes: whatever takes time the first time.


def warm():
    import importlib
    import io

    for name in ("json", "csv", "datetime", "re", "pathlib", "collections", "itertools", "statistics", "decimal", "subprocess"):
        importlib.import_module(name)
    try:
        import matplotlib.pyplot as plt
        import numpy as np
        import pandas as pd

        # Each of these takes seconds in a sandbox, and much code for data questions begins with one. Smaller packages, and those that others want in another version, are
        # imported when code does: in a session that has been used, what is imported cannot be exchanged any more.
        for name in ("scipy.stats", "scipy.optimize", "seaborn", "statsmodels.api", "plotly.express", *("sklearn." + part for part in (
                "linear_model", "ensemble", "model_selection", "preprocessing", "metrics", "cluster", "decomposition", "pipeline", "datasets"))):
            importlib.import_module(name)
    except ImportError:
        return  # the minimal environment
    frame = pd.read_csv(io.StringIO("day,kind,value\n2024-01-01,a,1.5\n2024-01-02,b,2.5\n"), parse_dates=["day"])
    frame._repr_html_()
    repr(frame.groupby("kind").agg({"value": "mean"}))
    frame.describe().to_string()
    (np.random.default_rng(0).random((64, 64)) @ np.ones((64, 64))).sum()
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], label="line")
    axes.bar([1, 2, 3], [3, 1, 2])
    axes.set_title("Title 图")
    axes.legend()
    plt.show()
    plt.close("all")


warm()
