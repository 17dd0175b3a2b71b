"""ffprobe, as far as what ffmpeg says of a file has it, times to the hundredth of a second: the wheel that carries ffmpeg has no ffprobe (packages.py puts this on PATH)."""

import json
import os
import re
import subprocess
import sys

WITH_VALUE = ("v", "loglevel", "i", "of", "print_format", "output_format", "show_entries", "select_streams", "read_ahead_limit", "analyzeduration", "probesize", "f")
FLAGS = ("show_format", "show_streams", "hide_banner", "pretty")
RATES = {"23.98": "24000/1001", "29.97": "30000/1001", "59.94": "60000/1001"}
LAYOUTS = {"mono": 1, "stereo": 2, "quad": 4, "5.0": 5, "5.1": 6, "7.1": 8}

ORDER = ("index", "codec_name", "codec_type", "width", "height", "pix_fmt", "sample_fmt", "sample_rate", "channels", "bits_per_sample", "r_frame_rate", "avg_frame_rate",
         "filename", "nb_streams", "format_name", "start_time", "duration", "size", "bit_rate", "tags")


def fail(text):
    sys.stderr.write(text + "\n")
    raise SystemExit(1)


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
            fail("This ffprobe is a stand-in that knows -show_format, -show_streams, -show_entries, -select_streams and -of; it does not know " + word)
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
    said = subprocess.run(["ffmpeg", "-hide_banner", "-i", path], stdin=None if "pipe:" in path else subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode(errors="replace")
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
    if len(streams) == 1 and "duration" in known:
        streams[0]["duration"] = known["duration"]
    return {**known, "nb_streams": len(streams), **({"tags": tags} if tags else {})}, streams


def chosen(streams, which):
    """The streams that -select_streams names: v, a:0, 1."""
    kind, _, number = which.partition(":")
    if kind.isdigit():
        return [s for s in streams if s["index"] == int(kind)]
    found = [s for s in streams if s["codec_type"].startswith(kind.lower())]
    return [s for i, s in enumerate(found) if not number or str(i) == number]


def main():
    asked = options(sys.argv[1:])
    if "i" not in asked:
        fail("You have to specify one input file.")
    known, streams = probe(asked["i"], asked.get("v", asked.get("loglevel", "info")))
    streams = chosen(streams, asked["select_streams"]) if "select_streams" in asked else streams
    entries = {name: keys.split(",") if equals else None for name, equals, keys in (part.partition("=") for part in asked.get("show_entries", "").split(":") if part)}
    parts = []  # (section, its values)
    if "show_streams" in asked or "stream" in entries:
        parts += [("stream", s) for s in streams]
    if "show_format" in asked or "format" in entries:
        parts.append(("format", known))
    parts = [(name, {k: values[k] for k in ORDER if k in values and (not entries.get(name) or k in entries[name])}) for name, values in parts]
    form, _, more = asked.get("of", "default").partition("=")
    if form == "json":
        made = {"streams": [v for name, v in parts if name == "stream"]} if any(name == "stream" for name, _ in parts) else {}
        print(json.dumps({**made, **{name: v for name, v in parts if name == "format"}}, indent=4))
        return
    settings = dict(s.partition("=")[::2] for s in more.split(":"))
    bare = {"1"} & {settings.get(k) for k in ("nk", "nokey")}
    for name, values in parts:
        plain = {k: v for k, v in values.items() if k != "tags"}
        if form == "csv":
            print(",".join(([] if settings.get("p", settings.get("print_section")) == "0" else [name]) + [str(v) for v in plain.values()]))
            continue
        wrapped = not {"1"} & {settings.get(k) for k in ("nw", "noprint_wrappers")}
        lines = [str(v) if bare else "%s=%s" % (k, v) for k, v in plain.items()]
        print("\n".join(["[%s]" % name.upper()] * wrapped + lines + ["[/%s]" % name.upper()] * wrapped))


main()
