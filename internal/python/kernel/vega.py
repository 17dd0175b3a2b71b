

# ---------------------------------------------------------------------------------------------------------------------
# Altair's charts as images (vega.py, between charts.py and error_hints.py in one file)
#
# vl-convert draws them, with a JavaScript engine, V8, in this process.

IMAGE_SCALE = 2  # pixels of the image for one of the chart
IMAGE_ROWS = 50_000  # of a chart; drawing takes a second for each 100,000


class Vega:
    def __init__(self):
        self.lock = threading.Lock()
        self.started = False

    def adapt_altair(self, altair):
        plain = altair.renderers.get
        altair.renderers.enable("mimetype")
        json_only = plain()

        def drawn(spec, **options):
            bundle = json_only(spec, **options)
            data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
            try:
                image = self.image(spec)
            except Exception:
                image = None  # without vl-convert, or of a chart that it cannot draw
            return ({**data, "image/png": image} if image else data), metadata

        altair.renderers.register("mimetype", drawn)
        altair.renderers.enable("mimetype")

    def image(self, spec):
        """The chart as a PNG in base64; None where it has too many rows to be drawn while somebody waits."""
        rows = sum(len(part) for part in (spec.get("datasets") or {}).values() if isinstance(part, list))
        if rows > IMAGE_ROWS:
            return None
        from altair.utils.mimebundle import spec_to_mimebundle

        version = str(spec.get("$schema", "")).rpartition("/v")[2].removesuffix(".json")
        bundle = spec_to_mimebundle(spec, format="png", mode="vega-lite", vegalite_version=version, scale_factor=IMAGE_SCALE)
        data = (bundle[0] if isinstance(bundle, tuple) else bundle)["image/png"]
        return data if isinstance(data, str) else binascii.b2a_base64(data, newline=False).decode()

    def adapt_converter(self, module):
        """Has the first call of each of vl-convert's functions start the engine while the limit on addresses is away: it reserves 64 GiB, and ends the process where it cannot."""
        for name in dir(module):
            function = getattr(module, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                setattr(module, name, self.starting(module, function))

    def starting(self, module, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with self.lock:
                if not self.started:
                    self.start(module.vega_to_svg.__wrapped__)
            return function(*args, **kwargs)
        return call

    def start(self, draw):
        global reserved_addresses
        soft, hard = _getrlimit(resource.RLIMIT_AS)
        before = addresses()
        _setrlimit(resource.RLIMIT_AS, (hard, hard))
        try:
            draw({"$schema": "https://vega.github.io/schema/vega/v5.json", "width": 1, "height": 1, "marks": []})
        except Exception:
            pass  # it has started all the same
        finally:
            self.started = True
            reserved_addresses += max(0, addresses() - before)
            if soft != resource.RLIM_INFINITY:
                _setrlimit(resource.RLIMIT_AS, (soft + reserved_addresses if hard == resource.RLIM_INFINITY else min(hard, soft + reserved_addresses), hard))


def addresses():
    """Bytes that this process has mapped or reserved."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
