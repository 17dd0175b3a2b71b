# What E2B's clients expect of an interpreter beyond a kernel: tables and figures as data, and variables of the environment that are one execution's alone.
# It runs once in each interpreter, before the first code. Nothing here imports a library that the code has not imported.

def _setup(folder):
    import importlib.util
    import json
    import os
    import sys

    from IPython import get_ipython
    from IPython.core.formatters import BaseFormatter

    shell = get_ipython()
    if getattr(shell, "cove_e2b", False):
        return  # the server has started again meanwhile, and does not know
    shell.cove_e2b = True
    passing = {}

    def before(*_):
        try:
            passing.update(json.loads(os.environ.pop("COVE_E2B_PASSING", "{}")))
        except ValueError:
            pass

    def behind(*_):
        for name, value in passing.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        passing.clear()

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", behind)

    def plain(value):
        """A value of a table or a figure as JSON has it."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if hasattr(value, "isoformat"):
            return value.isoformat() if value == value else None
        if hasattr(value, "item"):
            try:
                return plain(value.item())
            except (TypeError, ValueError):
                pass
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if value - value == 0 else None
        return str(value)

    class Data(BaseFormatter):
        """A DataFrame as its columns."""

        format_type = "application/vnd.e2b.data+json"
        most = 200_000  # cells

        def __call__(self, value):
            pandas = sys.modules.get("pandas")
            if pandas is None or not isinstance(value, pandas.DataFrame) or value.size > self.most:
                return None
            return {str(name): [plain(v) for v in value.iloc[:, at]] for at, name in enumerate(value.columns)}

    class Chart(BaseFormatter):
        """A figure of matplotlib as what it shows."""

        format_type = "application/vnd.e2b.chart+json"

        def __call__(self, value):
            figures = sys.modules.get("matplotlib.figure")
            if figures is None or not isinstance(value, figures.Figure):
                return None
            try:
                return figure(value)
            except Exception:
                return None  # the picture is there all the same

    def figure(fig):
        charts = [c for c in (axes(a) for a in fig.axes) if c is not None]
        if not charts:
            return {}
        if len(charts) == 1:
            return charts[0]
        title = fig._suptitle.get_text() if getattr(fig, "_suptitle", None) else None
        return {"type": "superchart", "title": title, "elements": charts}

    def axes(ax):
        from matplotlib.collections import PathCollection
        from matplotlib.container import BarContainer
        from matplotlib.patches import PathPatch, Rectangle, Wedge

        title = ax.get_title() or None
        wedges = [p for p in ax.patches if isinstance(p, Wedge)]
        if wedges:
            return {"type": "pie", "title": title, "elements": [
                {"label": w.get_label(), "angle": round(float(abs(w.theta2 - w.theta1)), 6), "radius": w.r} for w in wedges]}
        base = {"title": title, "x_label": ax.get_xlabel() or None, "y_label": ax.get_ylabel() or None,
                "x_unit": unit(ax.get_xlabel()), "y_unit": unit(ax.get_ylabel())}
        boxes = boxes_of(ax, PathPatch)
        if boxes:
            return {"type": "box_and_whisker", **base, "elements": boxes}
        bars = [c for c in ax.containers if isinstance(c, BarContainer)]
        if bars:
            return {"type": "bar", **base, "elements": bars_of(ax, bars)}
        scatters = [c for c in ax.collections if isinstance(c, PathCollection)]
        lines = [line for line in ax.get_lines() if len(line.get_xdata())]
        if scatters or lines:
            scales = {**scale(ax, "x"), **scale(ax, "y")}
            if scatters and not lines:
                parts = [{"label": shown(c, i), "points": points(c.get_offsets()[:, 0], c.get_offsets()[:, 1], ax)} for i, c in enumerate(scatters)]
                return {"type": "scatter", **base, **scales, "elements": parts}
            parts = [{"label": shown(line, i), "points": points(line.get_xdata(), line.get_ydata(), ax)} for i, line in enumerate(lines)]
            return {"type": "line", **base, **scales, "elements": parts}
        if not ax.has_data():
            return None
        return {"type": "unknown", "title": title, "elements": []}

    def shown(artist, at):
        label = str(artist.get_label() or "")
        return "Line %d" % at if not label or label.startswith("_") else label

    def unit(label):
        for opening, closing in ("()", "[]"):
            begin, end = label.rfind(opening), label.rfind(closing)
            if -1 < begin < end:
                return label[begin + 1:end]
        return None

    def dated(axis):
        import matplotlib.dates

        return isinstance(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter, (
            matplotlib.dates.DateConverter, matplotlib.dates.ConciseDateConverter, matplotlib.dates._SwitchableDateConverter)) or isinstance(
                axis.get_major_formatter(), (matplotlib.dates.DateFormatter, matplotlib.dates.AutoDateFormatter))

    def named(axis):
        import matplotlib.category

        return isinstance(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter, matplotlib.category.StrCategoryConverter)

    def points(xs, ys, ax):
        return [[plain(x), plain(y)] for x, y in zip(values(xs, ax.xaxis), values(ys, ax.yaxis))]

    def values(all, axis):
        import matplotlib.dates

        all = list(all)
        if dated(axis):
            return [matplotlib.dates.num2date(v) if isinstance(v, (int, float)) or hasattr(v, "dtype") and v.dtype.kind in "fi" else v for v in all]
        if named(axis) and getattr(axis, "units", None) is not None:
            names = {number: name for name, number in axis.units._mapping.items()}
            return [names.get(v, v) if isinstance(v, (int, float)) or hasattr(v, "dtype") and v.dtype.kind in "fi" else v for v in all]
        return all

    def scale(ax, letter):
        axis = getattr(ax, letter + "axis")
        kind = "datetime" if dated(axis) else "categorical" if named(axis) else axis.get_scale()
        ticks = values(axis.get_ticklocs(), axis)
        return {letter + "_scale": kind, letter + "_ticks": [plain(t) for t in ticks], letter + "_tick_labels": [t.get_text() for t in axis.get_ticklabels()]}

    def bars_of(ax, bars):
        out = []
        for at, container in enumerate(bars):
            group = str(container.get_label() or "")
            if not group or group.startswith("_"):
                group = "Group %d" % at
            upright = getattr(container, "orientation", "vertical") != "horizontal"
            axis = ax.xaxis if upright else ax.yaxis
            labels = {float(p): t.get_text() for p, t in zip(axis.get_ticklocs(), axis.get_ticklabels())}
            middles = [float(bar.get_x() + bar.get_width() / 2 if upright else bar.get_y() + bar.get_height() / 2) for bar in container]
            said = type(axis.get_major_formatter()).__name__ in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter")
            for middle, tick, bar in zip(middles, ticks_of(middles, labels, said), container):
                out.append({"label": labels.get(tick) or str(plain(middle)), "group": group, "value": plain(bar.get_height() if upright else bar.get_width())})
        return out

    def ticks_of(middles, ticks, said):
        """The ticks that bars stand for, each near one of its own where somebody has said what they are called: bars of several series stand beside each other around them."""
        found = [min(ticks, key=lambda tick: abs(tick - middle), default=None) for middle in middles]
        sorts = sorted(ticks)
        reach = min((b - a for a, b in zip(sorts, sorts[1:])), default=1) / 2
        near = len(set(found)) == len(found) and all(tick is not None and abs(tick - middle) < reach for tick, middle in zip(found, middles))
        return found if said and near else [next((tick for tick in ticks if abs(tick - middle) < 1e-6), None) for middle in middles]

    def boxes_of(ax, patch):
        """What Axes.boxplot draws: for each box its outline, two whiskers, two caps, a median, and what lies outside."""
        import numpy

        lines = ax.get_lines()
        outlines = [p.get_path().vertices for p in ax.patches if isinstance(p, patch)] or [line.get_xydata() for line in lines if len(line.get_xdata()) == 5]
        if not outlines or len(lines) < 5:
            return []
        out, labels = [], {round(float(p), 6): t.get_text() for p, t in zip(ax.xaxis.get_ticklocs(), ax.xaxis.get_ticklabels())}
        for box in outlines:
            box = numpy.asarray(box)
            left, right, low, high = box[:, 0].min(), box[:, 0].max(), box[:, 1].min(), box[:, 1].max()
            middle = (left + right) / 2
            inside = [(line.get_xdata(), line.get_ydata()) for line in lines if len(line.get_xdata()) and left - 1e-9 <= min(line.get_xdata()) and max(line.get_xdata()) <= right + 1e-9]
            whiskers = [y for x, ys in inside if len(x) == 2 and x[0] == x[1] for y in ys]
            medians = [ys[0] for x, ys in inside if len(x) == 2 and x[0] != x[1] and ys[0] == ys[1] and low - 1e-9 <= ys[0] <= high + 1e-9 and abs((x[1] - x[0]) - (right - left)) < 1e-9]
            if not medians:
                return []
            outliers = [y for (x, ys), line in ((pair, line) for pair, line in zip(inside, [li for li in lines if len(li.get_xdata()) and left - 1e-9 <= min(li.get_xdata()) and max(li.get_xdata()) <= right + 1e-9]))
                        if line.get_marker() not in ("", "None", None) for y in ys]
            out.append({"label": labels.get(round(float(middle), 6)) or str(plain(middle)), "min": plain(min(whiskers or [low])), "first_quartile": plain(low),
                        "median": plain(medians[0]), "third_quartile": plain(high), "max": plain(max(whiskers or [high])), "outliers": [plain(y) for y in outliers]})
        return out

    def pictures(module):
        """Pillow's own ways to show a picture have no screen here: clients get it, also when it is saved."""
        show, save = module.Image.show, module.Image.save

        def displayed(image):
            from IPython.display import display

            display(image)

        def showing(self, *_, **__):
            displayed(self)

        def saving(self, *args, **named):
            done = save(self, *args, **named)
            if not sys._getframe(1).f_globals.get("__name__", "").startswith(("matplotlib", "PIL", "IPython")):
                displayed(self)
            return done

        module.Image.show, module.Image.save = showing, saving
        showing.__doc__, saving.__doc__ = show.__doc__, save.__doc__

    class Late:
        """Has Pillow changed when the code imports it."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "PIL.Image":
                return None
            sys.meta_path.remove(Late)
            spec = importlib.util.find_spec(name)
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                pictures(module)

            spec.loader.exec_module = exec_module
            return spec

    if "PIL.Image" in sys.modules:
        pictures(sys.modules["PIL.Image"])
    else:
        sys.meta_path.insert(0, Late)
    for maker in (Data, Chart):
        formatter = maker(parent=shell.display_formatter)
        shell.display_formatter.formatters[maker.format_type] = formatter
    if os.path.isdir(folder):
        os.chdir(folder)


import sys

_setup(sys.argv[1])
