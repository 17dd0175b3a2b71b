"""Says which dotted names of the sentences that standard input lists as JSON do not exist."""

import importlib
import json
import os
import re
import sys
import warnings

os.environ["MPLBACKEND"] = "Agg"
warnings.simplefilter("ignore")

import xml.etree.ElementTree as trees

import matplotlib.pyplot as plt
import matplotlib.font_manager
import networkx
import numpy
import openpyxl
import pandas
import PIL.Image, PIL.ImageDraw, PIL.ImageFont, PIL.ImageMath
import plotly.express
import plotly.graph_objects
import pypdf
import scipy.stats
import seaborn
import sklearn.inspection
import sklearn.metrics
import statsmodels.api
from fpdf import FPDF
from pandas.io.formats.style import Styler

figure, axes = plt.subplots(subplot_kw={"projection": "3d"})
book = openpyxl.Workbook()
# What the sentences call things by, where it is no module's name.
KNOWN = {
    "np": numpy, "pd": pandas, "plt": plt, "nx": networkx, "sns": seaborn, "sm": statsmodels.api, "px": plotly.express, "go": plotly.graph_objects,
    "df": pandas.DataFrame({"a": [1]}), "s": pandas.Series([1]), "DataFrame": pandas.DataFrame, "Styler": Styler, "x": numpy.zeros(1),
    "fig": figure, "ax": axes, "artist": plt.Line2D([], []), "tick": axes.xaxis.get_major_ticks()[0],
    "font_manager": matplotlib.font_manager, "font": PIL.ImageFont.load_default(), "draw": PIL.ImageDraw.Draw(PIL.Image.new("L", (1, 1))), "Image": PIL.Image,
    "ImageMath": PIL.ImageMath, "G": networkx.Graph(), "workbook": book, "sheet": book.active, "cell": book.active["A1"], "writer": pypdf.PdfWriter(), "pdf": FPDF(),
    "element": trees.Element("a"), "links": statsmodels.api.families.links, "chi2": scipy.stats.chi2, "str": str,
    "ConfusionMatrixDisplay": sklearn.metrics.ConfusionMatrixDisplay, "RocCurveDisplay": sklearn.metrics.RocCurveDisplay,
    "PrecisionRecallDisplay": sklearn.metrics.PrecisionRecallDisplay, "PartialDependenceDisplay": sklearn.inspection.PartialDependenceDisplay,
}
# Methods of another type than the one above, a package that is not installed, and an option.
APART = {"fig.show", "fig.write_html", "x.mean", "x.iloc", "pywt.cwt", "display.precision"}


def exists(name):
    first, *rest = name.split(".")
    module = first
    try:
        thing = KNOWN[first] if first in KNOWN else importlib.import_module(first)
        for part in rest:
            module += "." + part
            thing = getattr(thing, part) if hasattr(thing, part) else importlib.import_module(module)
    except (ImportError, AttributeError):
        return False
    return True


missing = []
for says in json.load(sys.stdin):
    # What is gone or moved is named before a semicolon.
    told = re.sub(r"^.*? (?:is|are) gone[^;]*;|^.*? moved[^;]*;", "", says)
    missing += [name + ": " + says for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)", told) if name not in APART and not exists(name)]
json.dump(missing, sys.stdout)
