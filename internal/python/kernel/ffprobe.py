"""ffprobe, as far as what ffmpeg says of a file has it, times to the hundredth of a second: the wheel that carries ffmpeg has no ffprobe (packages.py puts this on PATH).

What is asked for and ffmpeg does not say is refused: an answer without it would be taken for ffprobe's own. A stream has the duration of its file."""

import json
import os
import re
import subprocess
import sys

WITH_VALUE = ("v", "loglevel", "i", "of", "print_format", "output_format", "show_entries", "select_streams", "read_ahead_limit", "analyzeduration", "probesize", "f")
FLAGS = ("show_format", "show_streams", "hide_banner", "pretty")
RATES = {"23.98": "24000/1001", "29.97": "30000/1001", "59.94": "60000/1001"}
SETTINGS = {"default": ("nw", "nk"), "csv": ("p", "nk", "s"), "json": ("c",)}  # of the forms of output, by their short names
SHORT = {"noprint_wrappers": "nw", "nokey": "nk", "print_section": "p", "item_sep": "s", "compact": "c"}
LAYOUTS = {"mono": 1, "stereo": 2, "quad": 4, "5.0": 5, "5.1": 6, "7.1": 8}

ORDER = ("index", "codec_name", "codec_type", "width", "height", "pix_fmt", "sample_fmt", "sample_rate", "channels", "bits_per_sample", "r_frame_rate", "avg_frame_rate",
         "filename", "nb_streams", "format_name", "start_time", "duration", "size", "bit_rate", "tags")


def fail(text):
    sys.stderr.write(text + "\n")
    raise SystemExit(1)


def refuse(what):
    fail("This ffprobe is a stand-in that knows -show_format, -show_streams, -show_entries, -select_streams and -of default, csv or json; it does not know %s. "
         "Where packages.system is set, the Debian package ffmpeg has the whole program; PyAV (import av) reads everything of a file." % what)


def options(words):
    found = {}
    while words:
        word = words.pop(0)
        name = word.lstrip("-").partition(":")[0]
        if not word.startswith("-") or word == "-":
            found["i"] = word
        elif name in WITH_VALUE and words:
            found[{"print_format": "of", "output_format": "of"}.get(name, name)] = words.pop(0)
        elif name in FLAGS:
            found[name] = True
        else:
            refuse("the option " + word)
    return found


def seconds(text):
    hours, minutes, rest = text.split(":")
    return "%.6f" % (int(hours) * 3600 + int(minutes) * 60 + float(rest))


def stream(index, kind, words):
    """What a line such as "Audio: mp3 (mp3float), 44100 Hz, mono, fltp, 64 kb/s" says."""
    parts = [p.strip() for p in re.split(r",\s*(?![^(]*\))", words)]
    made = {"index": index, "codec_name": parts[0].split(" ")[0], "codec_type": kind.lower()}
    for part in parts[1:]:
        if found := re.match(r"(\d+) Hz$", part):
            made["sample_rate"] = found[1]
        elif found := re.match(r"(\d+)x(\d+)\b", part):
            made["width"], made["height"] = int(found[1]), int(found[2])
        elif found := re.match(r"([\d.]+)(k?) fps$", part):
            rate = RATES.get(found[1]) or ("%g" % (float(found[1]) * (1000 if found[2] else 1)) + "/1")
            made["r_frame_rate"] = made["avg_frame_rate"] = rate
        elif found := re.match(r"(\d+) kb/s", part):
            made["bit_rate"] = found[1] + "000"
        elif kind == "Audio" and (found := re.match(r"([us]\d+|flt|dbl)p?\b", part)):
            made["sample_fmt"] = found[0]
            made["bits_per_sample"] = int((re.match(r"pcm_[a-z](\d+)", made["codec_name"]) or [0, 0])[1])
        elif kind == "Audio" and (found := re.match(r"(mono|stereo|quad|[57]\.[01]|(\d+) channels)", part)):
            made["channels"] = int(found[2] or LAYOUTS[found[1]])
        elif kind == "Video" and re.match(r"[a-z]+\d\w*(\(|$)", part):
            made.setdefault("pix_fmt", part.partition("(")[0])
    return made


def probe(path, level):
    said = subprocess.run(["ffmpeg", "-hide_banner", "-i", path], stdin=None if path == "-" or "pipe:" in path else subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode(errors="replace")
    head = re.search(r"^Input #0, (\S+), from ", said, re.M)
    if level not in (("quiet", "-8") if not head else ("quiet", "panic", "fatal", "error", "warning", "-8", "0", "8", "16", "24")):
        sys.stderr.write(said.replace("At least one output file must be specified\n", ""))
    if not head:
        raise SystemExit(1)
    known = {"filename": path, "format_name": head[1]}
    if os.path.isfile(path):
        known["size"] = str(os.path.getsize(path))
    tags = dict(re.findall(r"^    (\w+) *: (.*)$", said[head.end():].split("  Duration:")[0], re.M))
    if found := re.search(r"^  Duration: (\d+:\d+:[\d.]+)", said, re.M):
        known["duration"] = seconds(found[1])
    if found := re.search(r"^  Duration: .*start: (-?[\d.]+)", said, re.M):
        known["start_time"] = found[1]
    if found := re.search(r"^  Duration: .*bitrate: (\d+) kb/s", said, re.M):
        known["bit_rate"] = found[1] + "000"
    streams = [stream(int(n), kind, words) for n, kind, words in re.findall(r"^ +Stream #0:(\d+)[^:]*: (Audio|Video|Subtitle): (.*)$", said, re.M)]
    for made in streams:
        if "duration" in known:
            made["duration"] = known["duration"]
    return {**known, "nb_streams": len(streams), **({"tags": tags} if tags else {})}, streams


def chosen(streams, which):
    """The streams that -select_streams names: v, a:0, 1."""
    kind, _, number = which.partition(":")
    if kind.isdigit():
        return [s for s in streams if s["index"] == int(kind)]
    found = [s for s in streams if s["codec_type"].startswith(kind.lower())]
    return [s for i, s in enumerate(found) if not number or str(i) == number]


def entries_of(text):
    """The keys of each section that -show_entries names; None: all of them."""
    entries = {}
    for part in filter(None, text.split(":")):
        name, equals, keys = part.partition("=")
        if name not in ("stream", "format"):
            refuse("the section " + name)
        for key in keys.split(",") if equals else ():
            if key not in ORDER:
                refuse("the entry " + key)
        entries[name] = keys.split(",") if equals else None
    return entries


def form_of(text):
    """The form of the output and its settings, by their short names."""
    form, _, more = text.partition("=")
    if form not in SETTINGS:
        refuse("the form " + form)
    settings = {}
    for part in filter(None, more.split(":")):
        name, _, value = part.partition("=")
        settings[SHORT.get(name, name)] = value
    for name in settings:
        if name not in SETTINGS[form]:
            refuse("the setting %s of the form %s" % (name, form))
    return form, settings


def quoted(text, between):
    return '"%s"' % text.replace('"', '""') if any(c in text for c in (between, '"', "\n", "\r")) else text


def write(form, settings, parts):
    if form == "json":
        made = {"streams": [v for name, v in parts if name == "stream"]} if any(name == "stream" for name, _ in parts) else {}
        print(json.dumps({**made, **{name: v for name, v in parts if name == "format"}}, indent=None if settings.get("c") == "1" else 4))
        return
    bare = settings.get("nk", "1" if form == "csv" else "0") == "1"
    between = settings.get("s") or ","
    for name, values in parts:
        plain = [(k, str(v)) for k, v in values.items() if k != "tags"]
        if form == "csv":
            print(between.join([name] * (settings.get("p") != "0") + [("" if bare else k + "=") + quoted(v, between) for k, v in plain]))
            continue
        wrapped = settings.get("nw") != "1"
        print("\n".join(["[%s]" % name.upper()] * wrapped + [v if bare else "%s=%s" % (k, v) for k, v in plain] + ["[/%s]" % name.upper()] * wrapped))


def main():
    asked = options(sys.argv[1:])
    if "i" not in asked:
        fail("You have to specify one input file.")
    entries, (form, settings) = entries_of(asked.get("show_entries", "")), form_of(asked.get("of", "default"))
    known, streams = probe(asked["i"], asked.get("v", asked.get("loglevel", "info")))
    streams = chosen(streams, asked["select_streams"]) if "select_streams" in asked else streams
    parts = []  # (section, its values)
    if "show_streams" in asked or "stream" in entries:
        parts += [("stream", s) for s in streams]
    if "show_format" in asked or "format" in entries:
        parts.append(("format", known))
    write(form, settings, [(name, {k: values[k] for k in ORDER if k in values and (not entries.get(name) or k in entries[name])}) for name, values in parts])


main()
