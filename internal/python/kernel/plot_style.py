

# ---------------------------------------------------------------------------------------------------------------------
# How figures look (plot_style.py, between variables.py and model_view.py in one file)
#
# These are defaults: whatever code, a style sheet or a matplotlibrc says wins. Nothing here imports a library of plots.

PLAIN_PLOTS = os.environ.get("COVE_PLOT_STYLE") == "off"

# The page's series (web/src/tokens.css), and four more for figures that have many.
SERIES = ("#0F6B62", "#B8690F", "#4C6FB1", "#B5485D", "#6B7A2E", "#8A5FA8", "#2B8CA8", "#8A3B12", "#A3417F", "#5F5B54")
INK, MUTED, HAIRLINE, GROUND = "#1F1E1B", "#5F5B54", "#E4E0D9", "#FFFFFF"

PLOT_STYLE = {
    "axes.prop_cycle": "cycler('color', [%s])" % ", ".join(map(repr, SERIES)),
    "axes.axisbelow": True, "axes.edgecolor": "#8E887E", "axes.grid": True, "axes.grid.axis": "y", "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8, "axes.spines.right": False, "axes.spines.top": False, "axes.titlecolor": INK, "axes.titlepad": 12.0,
    "boxplot.medianprops.color": "#B8690F", "date.converter": "concise", "grid.color": HAIRLINE, "grid.linewidth": 0.8, "legend.edgecolor": "none", "legend.fancybox": False,
    "lines.linewidth": 1.8, "patch.facecolor": SERIES[0], "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED,
    "ytick.major.size": 0.0, "ytick.minor.size": 0.0,
}

DENSE = 140  # points to the inch from which the page takes a picture to be sharp
MOST_POINTS = 16_000_000  # of a picture that is drawn larger than its author asked


def style_matplotlib(matplotlib):
    """Sets what no matplotlibrc has set."""
    for name, value in PLOT_STYLE.items():
        if matplotlib.rcParams[name] == matplotlib.rcParamsDefault[name]:
            matplotlib.rcParams[name] = value


def _bare(method, rc, own):
    """A method of axes that returns something to look at without our grid, which would lie on top of it."""

    def drawn(self, *args, **kwargs):
        bare = rc["axes.grid"] and rc["grid.color"] == HAIRLINE
        if bare and own:
            self.grid(False)
        result = method(self, *args, **kwargs)
        if bare and not own:
            result.grid(False)
        return result

    return functools.wraps(method)(drawn)


def _legible(pie):
    """pie() with its numbers in white, which is legible on each of our series."""

    def drawn(self, *args, **kwargs):
        result = pie(self, *args, **kwargs)
        slices, _, *numbers = result
        for piece, text in zip(slices, *numbers) if numbers else ():
            if text.get_color() == INK and piece.get_facecolor() in series:
                text.set_color(GROUND)
        return result

    series = {tuple(int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)) + (1.0,) for color in SERIES}
    return functools.wraps(pie)(drawn)


def style_axes(module):
    # The grid of a second axis does not meet that of the first, and pictures are drawn below grids.
    axes, rc = module.Axes, sys.modules["matplotlib"].rcParams
    axes.imshow, axes.twinx, axes.twiny = _bare(axes.imshow, rc, True), _bare(axes.twinx, rc, False), _bare(axes.twiny, rc, False)
    axes.pie = _legible(axes.pie)


def figure_png(figure, base64=True, **kwargs):
    """A figure with twice the points, and the size to show it at; just as it is when it has many points already."""
    from IPython.core.pylabtools import print_figure
    saved = getattr(figure, "_cove_saved", None)
    width, height = figure.get_size_inches() * figure.dpi * 2
    sharp = not PLAIN_PLOTS and figure.dpi < DENSE and width * height <= MOST_POINTS
    data = print_figure(figure, fmt="retina" if sharp else "png", base64=False, **kwargs)
    if data is None:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    text = binascii.b2a_base64(data, newline=False).decode("ascii") if base64 else data
    about = {"width": width // 2, "height": height // 2} if sharp else {}
    if saved:
        about["saved"] = saved
    return (text, about) if about else text


def prepare_retina():
    # matplotlib_inline takes this for "retina", which is its format until code says otherwise (%config).
    from IPython.core import pylabtools
    pylabtools.retina_figure = figure_png


def style_plotly(module):
    """Registers the template "cove" as the default. It is made when the first figure asks, since that imports much."""
    templates, lazy = module.templates, object()

    class Templates(type(templates)):
        def __getitem__(self, name):
            if name == "cove" and self._templates.get(name) is lazy:
                self._templates[name] = self.merge_templates(super().__getitem__("plotly_white"), plotly_template())
            return super().__getitem__(name)

    templates.__class__ = Templates
    templates._templates["cove"] = lazy
    templates._default = "cove"


def plotly_template():
    axis = {"gridcolor": HAIRLINE, "linecolor": HAIRLINE, "zerolinecolor": HAIRLINE, "tickcolor": HAIRLINE, "automargin": True}
    family = ('ui-sans-serif, system-ui, "Segoe UI", Roboto, "PingFang SC", "HarmonyOS Sans SC", "Microsoft YaHei", '
              '"Noto Sans CJK SC", sans-serif')
    return {"layout": {
        "colorway": list(SERIES), "paper_bgcolor": GROUND, "plot_bgcolor": GROUND, "xaxis": axis, "yaxis": axis,
        "font": {"color": INK, "family": family, "size": 13}, "title": {"x": 0, "xref": "paper", "font": {"size": 16}},
        "hoverlabel": {"align": "left", "bgcolor": GROUND, "bordercolor": HAIRLINE, "font": {"color": INK}},
    }}
