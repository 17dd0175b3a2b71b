

# ---------------------------------------------------------------------------------------------------------------------
# What a figure shows, as data (charts.py, between model_view.py and vega.py in one file)
#
# For readers that see no pictures. The form is that of package chart, which checks it. Nothing here imports a library of plots, and nothing fails: what cannot be read is left out.

import copy
import inspect
import re

CHART_MIME = "application/vnd.cove.chart+json"  # the host takes it out of each bundle
CHART_AXES, CHART_PARTS, CHART_POINTS, CHART_BARS, CHART_CELLS = 12, 20, 12, 30, 150  # of each that are listed
CHART_LABELS, CHART_TEXTS, CHART_TEXT = 60, 6, 120  # tick labels that are measured; texts within axes; characters
CHART_GAP = 2  # points of the picture between labels that can be told apart
CHART_SIZE = 32 << 10  # characters of the whole
MIDNIGHT = re.compile(r"(?<=\d\d-\d\d)[T ]00:00(:00)?(\.0*)?(\+00:00|Z)?$")


class ChartFormatter(BaseFormatter):
    """Figures of matplotlib, and plots of plotnine, for a model; nothing for people."""

    format_type = Unicode(CHART_MIME)
    teller = None

    def __call__(self, value):
        # Not by a registered type: the inline back end takes Figure out of all formatters when its formats change.
        figures, grammar = sys.modules.get("matplotlib.figure"), sys.modules.get("plotnine")
        if grammar is not None and isinstance(value, getattr(grammar, "ggplot", ())):
            return self.teller.chart(value, drawn)
        return self.teller.chart(value) if figures is not None and isinstance(value, figures.Figure) else None


def drawn(plot):
    """The figure of a plot of plotnine's, which draws one for each picture."""
    plot = copy.deepcopy(plot)
    figure = plot.draw()
    figure.draw_without_rendering()
    for axes in figure.axes:  # the names stand beside them, as texts of the figure
        for name, set_name in ("title", axes.set_title), ("x", axes.set_xlabel), ("y", axes.set_ylabel):
            if text := getattr(plot.labels, name, None):
                set_name(text)
    return figure


def chart_text(value):
    return str(value)[:CHART_TEXT].strip()


def chart_value(value):
    """A number, or what is not one in words, a date without the midnight of its time; None for what is missing."""
    if isinstance(value, (bool, str)):
        return MIDNIGHT.sub("", chart_text(value))
    try:
        number = value if type(value) is int else float(value)
    except (TypeError, ValueError, OverflowError):
        text = chart_text(value)
        return None if text in ("NaT", "nan", "<NA>", "None") else MIDNIGHT.sub("", text)
    return number if type(number) is int and abs(number) < 1 << 53 else float("%.9g" % number) if number - number == 0 else None


def chart_label(artist):
    label = chart_text(artist.get_label() or "")
    return "" if label.startswith("_") else label


def chart_spread(count, most):
    """The places of at most so many of a count, the first and the last among them."""
    return range(count) if count <= most else [i * (count - 1) // (most - 1) for i in range(most)]


def chart_series(kind, label, xs, ys, most=CHART_POINTS, shown=lambda x: x):
    """Points of a series: some or all, the lowest, and the highest."""
    numpy = sys.modules["numpy"]
    xs, ys = numpy.asarray(xs), numpy.asarray(ys)
    count = min(len(xs), len(ys))
    part = {"kind": kind, "label": label, "count": count,
            "points": [[chart_value(shown(xs[i])), chart_value(ys[i])] for i in chart_spread(count, most)]}
    try:
        numbers = ys[:count].astype(float)
        part["missing"] = int(numpy.isnan(numbers).sum())
        if part["missing"] < count:
            part["low"], part["high"] = ([chart_value(shown(xs[i])), chart_value(ys[i])] for i in (numpy.nanargmin(numbers), numpy.nanargmax(numbers)))
    except (TypeError, ValueError):
        pass  # they are no numbers
    return part


def chart_table(values):
    """The cells of a picture or a heat map: all where they are few, and their range."""
    numpy = sys.modules["numpy"]
    values = numpy.ma.filled(numpy.ma.asarray(values).astype(float), numpy.nan)
    part = {"shape": [int(n) for n in values.shape], "count": int(values.size)}
    if values.size and not numpy.isnan(values).all():
        part["range"] = [chart_value(numpy.nanmin(values)), chart_value(numpy.nanmax(values))]
    if values.ndim == 2 and values.size <= CHART_CELLS:
        part["cells"] = [[chart_value(value) for value in row] for row in values]
    return part


class ChartAxis:
    """One axis of matplotlib: what its numbers stand for."""

    def __init__(self, axes, axis):
        self.axes, self.axis = axes, axis
        converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
        name = type(converter).__name__
        self.kind = "date" if "Date" in name else "period" if "Period" in name else "category" if "Category" in name else "number"
        formatter = type(axis.get_major_formatter()).__name__
        self.names = {}
        if formatter in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter"):
            labels = axis.get_ticklabels()[:2000]
            self.names = {round(float(at), 6): chart_text(label.get_text()) for at, label in zip(axis.get_majorticklocs(), labels) if label.get_text()}
        if self.kind == "category":
            self.names = {round(float(at), 6): chart_text(name) for name, at in axis.units._mapping.items()}

    def shown(self, value):
        """What a place on the axis stands for."""
        try:
            at = float(value)
        except (TypeError, ValueError):
            return value
        if self.kind == "date":
            date = sys.modules["matplotlib.dates"].num2date(at).replace(tzinfo=None)
            return date.isoformat(" ", "minutes") if date.second == 0 else date.isoformat(" ", "seconds")
        if self.kind == "period":
            return sys.modules["pandas"].Period(ordinal=int(round(at)), freq=self.axes.freq)
        return self.names.get(round(at, 6), value)

    def grouped(self, places):
        """The ticks that bars stand for, where they stand beside those of other series around them; the places themselves where that is not so."""
        ticks = sorted(self.names) or (self.axis.get_majorticklocs().tolist() if type(self.axis.get_major_locator()).__name__ == "FixedLocator" else [])
        reach = min((b - a for a, b in zip(ticks, ticks[1:])), default=1) / 2
        found = [min(ticks, key=lambda tick: abs(tick - place), default=place) for place in places]
        return found if len({*found}) == len(found) and all(abs(tick - place) < reach for tick, place in zip(found, places)) else places

    def told(self, renderer):
        first, last = self.axis.get_view_interval()
        told = {"label": chart_text(self.axis.get_label_text()), "scale": self.axis.get_scale()}
        if self.kind == "number" and not self.names:
            told["range"] = [chart_value(first), chart_value(last)]
        elif self.kind in ("date", "period"):
            told["range"] = [chart_value(self.shown(at)) for at in (first, last)]
        else:
            told["names"] = [name for at, name in sorted(self.names.items()) if min(first, last) <= at <= max(first, last)][:CHART_BARS]
        if renderer is not None and self.axis.get_visible():
            told["overlap"] = self.overlap(renderer)
        return told

    def overlap(self, renderer):
        """How many labels of ticks lie on the one before them, or touch it. Those at an angle are not looked at: what holds them says nothing."""
        first, last = sorted(self.axis.get_view_interval())
        ticks = zip(self.axis.get_majorticklocs(), self.axis.get_ticklabels())
        labels = [label for at, label in ticks if first <= at <= last and label.get_visible() and label.get_text()][:CHART_LABELS]
        if any(label.get_rotation() % 90 for label in labels):
            return 0
        boxes = [label.get_window_extent(renderer) for label in labels]
        return sum(1 if min(a.x1, b.x1) - max(a.x0, b.x0) > -CHART_GAP and min(a.y1, b.y1) - max(a.y0, b.y0) > 1 else 0 for a, b in zip(boxes, boxes[1:]))


class AxesChart:
    """What one of a matplotlib figure's axes shows."""

    def __init__(self, axes, renderer):
        self.axes, self.renderer = axes, renderer
        self.parts = []
        self.taken = set()  # artists that are parts of others

    def told(self):
        axes = self.axes
        self.x, self.y = ChartAxis(axes, axes.xaxis), ChartAxis(axes, axes.yaxis)
        told = {"title": chart_text(" ".join(filter(None, (axes.get_title(where) for where in ("left", "center", "right"))))), "projection": axes.name}
        for name, axis in (("x", self.x), ("y", self.y)):
            try:
                told[name] = axis.told(self.renderer if axes.axison else None)
            except Exception:
                pass
        if axes.name == "rectilinear" or axes.name == "polar":
            for found in (self.summaries, self.bars, self.wedges, self.lines, self.collections, self.images):
                try:
                    found()
                except Exception:
                    pass
        self.parts = [part for part in self.parts if "count" not in part or part["count"] > part.get("missing", 0)]  # the rest are legends' and libraries'
        told["parts"], told["more"] = self.parts[:CHART_PARTS], max(0, len(self.parts) - CHART_PARTS)
        if not self.parts:  # these are of a kind that is not told
            told["drawn"] = len(axes.lines) + len(axes.collections) + len(axes.patches) + len(axes.images)
        legend = axes.get_legend()
        if legend is not None:
            told["legend"] = [chart_text(text.get_text()) for text in [legend.get_title(), *legend.get_texts()] if text.get_text()][:CHART_PARTS]
        if not any(part["kind"] in ("pie", "heat map") for part in self.parts):
            told["texts"] = [chart_text(text.get_text()) for text in axes.texts if text.get_text().strip()][:CHART_TEXTS]
        return told

    def summaries(self):
        """Boxes and violins, from what note_axes kept of them."""
        for kind, artist, made, rows in getattr(self.axes, "_cove_summaries", ()):
            if artist.axes is self.axes:
                self.taken.update(made)
                self.parts.append({"kind": kind, "count": len(rows), "summaries": [
                    {"label": chart_text(row["label"]) or chart_text(chart_value(self.x.shown(row["at"]))), "values": {name: chart_value(value) for name, value in row["values"].items()}}
                    for row in rows[:CHART_BARS]]})

    def by_colour(self, bar):
        """What the legend says of a bar's colour, where the bar itself has no name, as seaborn's."""
        legend = self.axes.get_legend()
        handles = getattr(legend, "legend_handles", None) or getattr(legend, "legendHandles", ())
        named = {handle.get_facecolor(): chart_text(text.get_text()) for handle, text in zip(handles, legend.get_texts() if handles else ()) if type(handle) is type(bar)}
        return named.get(bar.get_facecolor(), "")

    def bars(self):
        for container in self.axes.containers:
            if type(container).__name__ != "BarContainer":
                self.taken.update(id(artist) for artist in (container.get_children() if hasattr(container, "get_children") else ())[1:])
                continue
            bars = container.patches
            lying = getattr(container, "orientation", "vertical") == "horizontal"
            starts = [bar.get_y() if lying else bar.get_x() for bar in bars]
            sizes = [bar.get_height() if lying else bar.get_width() for bar in bars]
            values = [bar.get_width() if lying else bar.get_height() for bar in bars]
            axis = self.y if lying else self.x
            joined = len(bars) > 2 and axis.kind == "number" and all(abs(a + size - b) <= 1e-6 * abs(size) for a, size, b in zip(starts, sizes, starts[1:]))
            named = any(round(a + size / 2, 6) in axis.names for a, size in zip(starts, sizes))
            self.taken.update(map(id, bars))
            label = chart_label(container) or (self.by_colour(bars[0]) if bars else "")
            if joined and not named:
                part = chart_series("histogram", label, starts, values, CHART_BARS)
                part["range"] = [chart_value(starts[0]), chart_value(starts[-1] + sizes[-1])]
            else:
                part = chart_series("bar", label, axis.grouped([a + size / 2 for a, size in zip(starts, sizes)]), values, CHART_BARS, axis.shown)
                part["stacked"] = any(float(bar.get_x() if lying else bar.get_y()) != 0 for bar in bars)
            part["lying"] = lying
            self.parts.append(part)

    def wedges(self):
        wedges = [patch for patch in self.axes.patches if type(patch).__name__ == "Wedge"]
        if wedges:
            texts = [text.get_text() for text in self.axes.texts if text.get_text() and not text.get_text().rstrip("% ").replace(".", "").isdigit()]
            labels = [chart_label(wedge) for wedge in wedges]
            if not any(labels) and len(texts) == len(wedges):
                labels = [chart_text(text) for text in texts]
            self.parts.append({"kind": "pie", "count": len(wedges), "points": [
                [label, float("%.4g" % ((wedge.theta2 - wedge.theta1) / 360))] for label, wedge in zip(labels[:CHART_BARS], wedges)]})

    def lines(self):
        for line in self.axes.lines:
            if id(line) in self.taken or not line.get_visible():
                continue
            along_x, along_y = line.get_transform().contains_branch_seperately(self.axes.transData)
            xs, ys = line.get_xdata(orig=True), line.get_ydata(orig=True)
            if not along_x or not along_y:  # axhline and axvline
                if along_x or along_y:
                    axis, at = (self.x, xs[0]) if along_x else (self.y, ys[0])
                    self.parts.append({"kind": "vertical line" if along_x else "horizontal line", "label": chart_label(line), "points": [[chart_value(axis.shown(at)), None]]})
                continue
            kind = "scatter" if line.get_linestyle() in ("None", "", " ") else "line"
            self.parts.append(chart_series(kind, chart_label(line), xs, ys, shown=self.x.shown))

    def collections(self):
        numpy = sys.modules["numpy"]
        for collection in self.axes.collections:
            name = type(collection).__name__
            if id(collection) in self.taken or not collection.get_visible():
                continue
            if name == "PathCollection":
                at = numpy.ma.filled(collection.get_offsets(), numpy.nan)
                part = chart_series("scatter", chart_label(collection), at[:, 0], at[:, 1], shown=self.x.shown)
                good = at[numpy.isfinite(at).all(axis=1)]
                if len(good):
                    part["across"] = [chart_value(self.x.shown(edge)) for edge in (good[:, 0].min(), good[:, 0].max())]
                if len(good) > 2 and good[:, 0].std() > 0 and good[:, 1].std() > 0 and self.x.kind == "number":
                    part["correlation"] = float("%.3g" % numpy.corrcoef(good.T)[0, 1])
                self.parts.append(part)
            elif name == "QuadMesh" or name == "PolyQuadMesh":
                values = collection.get_array()
                shape = getattr(collection, "_coordinates", numpy.empty((0, 0))).shape
                if values.ndim == 1 and (shape[0] - 1) * (shape[1] - 1) == values.size:
                    values = values.reshape(shape[0] - 1, shape[1] - 1)
                self.parts.append({"kind": "heat map", "label": chart_label(collection), **chart_table(values)})
            elif "Poly" in name:
                self.parts.append({"kind": "area", "label": chart_label(collection)})
            elif "Contour" in name:
                self.parts.append({"kind": "contour", "points": [[chart_value(level), None] for level in collection.levels[:CHART_BARS]]})
            elif chart_label(collection):
                self.parts.append({"kind": "lines", "label": chart_label(collection)})

    def images(self):
        for image in self.axes.images:
            values = image.get_array()
            flat = values is not None and values.ndim == 2
            self.parts.append({"kind": "heat map", **chart_table(values)} if flat else {"kind": "picture", "shape": [int(n) for n in values.shape]})


def note_axes(module):
    """Keeps the numbers of boxes and violins, which cannot be read from what is drawn."""

    def noted(method, kind, values, artists):
        def drawn(self, *args, **kwargs):
            made = method(self, *args, **kwargs)
            try:
                bound = signature.bind(self, *args, **kwargs).arguments
                stats = bound[next(name for name in signature.parameters if name.endswith("stats"))]
                places = bound.get("positions")
                places = range(1, len(stats) + 1) if places is None else places
                rows = [{"label": row.get("label", ""), "at": float(at), "values": values(row)} for row, at in zip(stats, places)]
                lists = {name: found if isinstance(found, list) else [found] for name, found in made.items()}
                ids = [id(artist) for found in lists.values() for artist in found]
                self.__dict__.setdefault("_cove_summaries", []).append((kind, lists[artists][0], ids, rows))
            except Exception:
                pass
            return made
        signature = inspect.signature(method)
        return functools.wraps(method)(drawn)

    def box(row):
        return {"low": row["whislo"], "q1": row["q1"], "median": row["med"], "q3": row["q3"], "high": row["whishi"], "outliers": len(row.get("fliers", ()))}

    def violin(row):
        return {"low": row["min"], "median": row["median"], "mean": row["mean"], "high": row["max"]}

    axes = module.Axes
    axes.bxp = noted(axes.bxp, "box", box, "medians")
    axes.violin = noted(axes.violin, "violin", violin, "bodies")


def matplotlib_chart(figure):
    try:
        renderer = figure.canvas.get_renderer()
    except Exception:
        renderer = None  # another back end's
    shown = [axes for axes in figure.axes if axes.get_visible() and not hasattr(axes, "_colorbar") and axes.get_label() != "<colorbar>"]
    title = getattr(figure, "_suptitle", None)
    told = []
    for axes in shown[:CHART_AXES]:
        try:
            told.append(AxesChart(axes, renderer).told())
        except Exception:
            told.append({"parts": []})
    return {"title": chart_text(title.get_text()) if title is not None else "", "axes": told, "more": max(0, len(shown) - CHART_AXES)}


# -- figures of libraries that send what they show


def plotly_values(values):
    """A list of a Plotly trace, which may be written as bytes."""
    if isinstance(values, dict) and "bdata" in values:
        numpy = sys.modules["numpy"]
        found = numpy.frombuffer(binascii.a2b_base64(values["bdata"]), dtype=values["dtype"])
        return found.reshape([int(n) for n in str(values["shape"]).split(",")]) if values.get("shape") else found
    return values if values is not None else []


def plotly_title(owner):
    title = (owner or {}).get("title")
    return chart_text((title.get("text") if isinstance(title, dict) else title) or "")


def plotly_part(trace):
    numpy = sys.modules["numpy"]
    kind, label = trace.get("type") or "scatter", chart_text(trace.get("name") or "")
    xs, ys = plotly_values(trace.get("x")), plotly_values(trace.get("y"))
    if kind in ("scatter", "scattergl", "scatterpolar") and len(ys):
        lines = "lines" in (trace.get("mode") or "lines")
        return chart_series("line" if lines else "scatter", label, xs if len(xs) else range(len(ys)), ys)
    if kind in ("bar", "funnel", "waterfall"):
        lying = trace.get("orientation") == "h"
        return {**(chart_series("bar", label, ys, xs, CHART_BARS) if lying else chart_series("bar", label, xs, ys, CHART_BARS)), "lying": lying}
    if kind in ("pie", "funnelarea", "sunburst", "treemap"):
        labels, values = plotly_values(trace.get("labels")), numpy.asarray(plotly_values(trace.get("values")), dtype=float)
        whole = values.sum() if kind == "pie" else None
        return {"kind": "pie" if kind == "pie" else kind, "label": label, "count": len(values), "points": [
            [chart_value(labels[i]), float("%.4g" % (values[i] / whole)) if whole else chart_value(values[i])] for i in range(min(len(labels), len(values), CHART_BARS))]}
    if kind in ("box", "violin", "histogram"):
        values = numpy.asarray(ys if len(ys) else xs)
        if kind == "histogram" and values.dtype.kind not in "iuf":
            names, counts = numpy.unique(values.astype(str), return_counts=True)
            return chart_series("bar", label, names, counts, CHART_BARS)
        low, first, median, third, high = (chart_value(value) for value in numpy.nanpercentile(values.astype(float), [0, 25, 50, 75, 100]))
        return {"kind": kind + " of raw values" if kind == "histogram" else kind, "count": len(values), "summaries": [
            {"label": label, "values": {"low": low, "q1": first, "median": median, "q3": third, "high": high}}]}
    if kind in ("heatmap", "contour", "surface"):
        return {"kind": "heat map" if kind == "heatmap" else kind, "label": label, **chart_table(plotly_values(trace.get("z")))}
    return {"kind": kind, "label": label}


def plotly_chart(figure):
    """Of a Plotly figure as it is sent: its traces by the axes on which they lie."""
    layout, groups = figure.get("layout") or {}, {}
    traces = figure.get("data") or ()
    for trace in traces:
        part = {"kind": trace.get("type") or "scatter"}
        try:
            part = plotly_part(trace)
        except Exception:
            pass
        groups.setdefault((trace.get("xaxis") or "x", trace.get("yaxis") or "y"), []).append(part)
    told = []
    for (x, y), parts in list(groups.items())[:CHART_AXES]:
        axes = {"parts": parts[:CHART_PARTS], "more": max(0, len(parts) - CHART_PARTS)}
        for name, ident in (("x", x), ("y", y)):
            axis = layout.get(name + "axis" + ident[1:]) or {}
            axes[name] = {"label": plotly_title(axis), "scale": axis.get("type") or ""}
            if isinstance(axis.get("range"), (list, tuple)):
                axes[name]["range"] = [chart_value(edge) for edge in axis["range"][:2]]
        told.append(axes)
    return {"title": plotly_title(layout), "axes": told, "more": max(0, len(groups) - CHART_AXES)}


def vega_chart(spec):
    """Of a Vega-Lite specification: its marks, and the fields that they stand for."""
    told = []

    def walk(view, depth, data, title, encoding):
        data = view.get("data") or data
        title = view.get("title") or title
        encoding = {**encoding, **(view.get("encoding") or {})}
        for name in ("layer", "hconcat", "vconcat", "concat"):
            for inner in view.get(name) or () if depth < 5 else ():
                walk(inner, depth + 1, data, title, encoding)
        if isinstance(view.get("spec"), dict) and depth < 5:
            walk(view["spec"], depth + 1, data, title, encoding)
        mark = view.get("mark")
        if mark:
            rows = (spec.get("datasets") or {}).get((data or {}).get("name")) or (data or {}).get("values") or ()
            part = {"kind": chart_text(mark.get("type") if isinstance(mark, dict) else mark), "count": len(rows), "fields": {}}
            for channel, said in encoding.items():
                if isinstance(said, dict) and (said.get("field") or said.get("aggregate")) and len(part["fields"]) < CHART_PARTS:
                    part["fields"][chart_text(channel)] = chart_text("%s %s %s" % (said.get("aggregate") or "", said.get("field") or "", "(%s)" % said["type"] if said.get("type") else ""))
            x, y = (encoding.get(channel) or {} for channel in "xy")
            if rows and x.get("field") and y.get("field") and not x.get("aggregate") and not y.get("aggregate"):
                part.update(chart_series(part["kind"], "", [row.get(x["field"]) for row in rows], [row.get(y["field"]) for row in rows]))
            told.append({"title": chart_text(title.get("text") if isinstance(title, dict) else title or ""), "parts": [part]})

    walk(spec, 0, None, "", {})
    return {"title": "", "axes": told[:CHART_AXES], "more": max(0, len(told) - CHART_AXES)}


def bundle_chart(bundle):
    """What a bundle of another library than matplotlib shows, or None."""
    for mime, value in bundle.items():
        read = plotly_chart if mime == "application/vnd.plotly.v1+json" else vega_chart if mime.startswith("application/vnd.vegalite.") else None
        if read is not None and isinstance(value, dict) and "numpy" in sys.modules:
            return read(value)
    return None


def chart_json(chart):
    """A chart as text, without its points where there are very many."""
    text = json.dumps(chart)
    if len(text) > CHART_SIZE:
        for axes in chart["axes"]:
            for part in axes["parts"]:
                for name in ("points", "cells", "summaries"):
                    part.pop(name, None)
        text = json.dumps(chart)
    return text if len(text) <= CHART_SIZE else None
