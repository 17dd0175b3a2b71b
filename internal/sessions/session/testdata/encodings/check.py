"""Counts for how many texts of each encoding its name is found, or one that reads them the same. Behind encoding.py in one program; see README.md.

check(names) makes tables and lists in many languages of what names.json has; check_folder(path) reads the files of a folder, which lie in folders with the names of their encodings."""

import collections
import random
from pathlib import Path

WESTERN_LANGUAGES = ["de", "fr", "es", "pt"]
LANGUAGES = {
    "gb18030": ["zh"], "big5": ["zh-Hant"], "cp932": ["ja"], "cp949": ["ko"], "cp1251": ["ru", "bg", "uk"], "koi8-r": ["ru"], "cp1252": WESTERN_LANGUAGES + ["it", "sv"],
    "cp1250": ["pl", "cs", "hu", "sk", "hr"], "cp1253": ["el"], "cp1254": ["tr"], "cp1255": ["he"], "cp1256": ["ar", "fa"], "cp874": ["th"], "cp850": WESTERN_LANGUAGES, "mac-roman": WESTERN_LANGUAGES,
    "utf-16": ["zh", "ja", "ru", "de", "fr", "ar"], "utf-16-le": ["zh", "ja", "de"], "utf-8": ["zh", "ja", "ru", "de", "fr", "ar"],
}


def texts(of, seed):
    """Tables with three to 150 rows, separated in two ways, and running text."""
    r = random.Random(seed)
    heads, places, languages, months, days = of["heads"], of["territories"], of["languages"], of["months"], of["days"]
    for rows in (3, 6, 12, 25, 60, 150):
        yield "\n".join([",".join(heads[:3])] + ["%d,%s,%s" % (r.randint(2000, 2025), r.choice(months), r.choice(days)) for _ in range(rows)]) + "\n"
        yield "\n".join(["code;" + ";".join(heads[1:3])] + ["%d;%s;%.2f" % (r.randint(1, 999), r.choice(places), r.random() * 1000) for _ in range(rows)]) + "\n"
        yield "\n".join(["id,name,language,amount"] + ["%d,%s,%s,%d" % (r.randint(1, 999), r.choice(places), r.choice(languages), r.randint(1, 99999)) for _ in range(rows)]) + "\n"
        yield "\n".join(", ".join(r.choice(languages) for _ in range(5)) + "." for _ in range(max(1, rows // 4))) + "\n"


def right(found, data, text):
    try:
        return found is not None and data.decode(found) == text
    except (UnicodeDecodeError, LookupError):
        return False


def check(names):
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for name, languages in LANGUAGES.items():
        for language in languages:
            for text in texts(names[language], name + language):
                data = text.encode(name, "ignore")  # a name of another alphabet may have a letter that is not there
                if not data.isascii():
                    count(counts[name], data, data.decode(name))
    return counts


def count(of, data, text):
    found = encoding(data, True)  # noqa: F821
    of[0] += 1
    of[1] += right(found, data, text)
    of[2] += right(found, data, text) or right(getattr(found, "other", None), data, text)


def check_folder(path):
    alike = {"gb2312": "gb18030", "euc-kr": "cp949", "shift_jis": "cp932", "tis-620": "cp874", "iso-8859-1": "cp1252", "ibm866": "cp866", "macroman": "mac-roman"}
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for file in sorted(p for p in Path(path).rglob("*") if p.is_file()):
        name = file.parent.name.lower()
        name = "cp" + name[8:12] if name.startswith("windows-") else alike.get(name, name)
        data = file.read_bytes()
        try:
            text = data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
        if not data.isascii():
            count(counts[name], data, text)
    return counts


def show(counts):
    for name, (files, first, second) in sorted(counts.items()):
        print("%-10s %4d texts, %5.1f %% right, %5.1f %% with the second name" % (name, files, 100 * first / files, 100 * second / files))
