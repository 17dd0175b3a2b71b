"""A build backend (PEP 517) without dependencies: it packs the folder src as a wheel."""

import base64
import hashlib
import os
import zipfile


def _facts(script):
    """Return name, version, tag and the metadata text, after a script has had its say."""
    with open("PKG-INFO") as file:
        text = file.read()
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    facts = {"name": fields["Name"], "version": fields["Version"], "tag": "py3-none-any"}
    with open(script) as file:
        exec(compile(file.read(), script, "exec"), facts)
    text = text.replace("Name: " + fields["Name"], "Name: " + facts["name"])
    text = text.replace("Version: " + fields["Version"] + "\n", "Version: " + facts["version"] + "\n")
    base = facts["name"].replace("-", "_").replace(".", "_") + "-" + facts["version"]
    return base, facts["tag"], text


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    base, _, text = _facts("metadata.py")
    info = base + ".dist-info"
    os.makedirs(os.path.join(metadata_directory, info))
    with open(os.path.join(metadata_directory, info, "METADATA"), "w") as file:
        file.write(text)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    base, tag, text = _facts("script.py")
    info = base + ".dist-info/"
    wheel = f"{base}-{tag}.whl"
    files = {}
    for folder, _, names in os.walk("src"):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, "src")] = file.read()
    files[info + "METADATA"] = text.encode()
    pure = "true" if tag.endswith("-any") else "false"
    files[info + "WHEEL"] = f"Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode()
    record = ""
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        archive.writestr(info + "RECORD", record + info + "RECORD,,\n")
    return wheel
