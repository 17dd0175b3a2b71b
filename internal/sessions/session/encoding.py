

# How a text is encoded: one answer for the preview, the first look and the hints. chardet says which encodings the bytes may be in and how sure it is of each; which of them people use, and what
# nobody writes, is put in besides. Where the environment has no chardet of version 7 or later, a few encodings are tried.

import unicodedata


class Encoding(str):
    """A name that Python knows."""

    other = None  # another one that is nearly as likely


def encoding(head, whole):
    """How a text is encoded, or None for what is no text. head is its beginning; whole says that there is no more."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if head.startswith(mark):
            return Encoding(name)
    if b"\0" in head:
        return without_mark(head, whole)
    text = decoded(head, "utf-8", whole)
    if text is not None:
        return Encoding("utf-8") if printable(text) else None
    return likeliest(candidates(head, whole), head, whole)


def without_mark(head, whole):
    """The name of UTF-16 whose mark is missing: one byte of each pair is 0 far more often than the other, and nearly all characters are those of texts."""
    even, odd_places = head[0::2].count(0), head[1::2].count(0)
    if min(even, odd_places) * 10 > max(even, odd_places):
        return None
    name = "utf-16-be" if even > odd_places else "utf-16-le"
    text = (decoded(head, name, whole) or "")[:SAMPLE_OF_LETTERS]
    strange = sum(unicodedata.category(c) in ("Cn", "Co", "Cs", "Cc") and c not in "\t\n\r" for c in text)
    return Encoding(name) if text and strange <= len(text) // 50 else None


SURE = 1.25  # the best one is not in doubt where it is so much better than the next


def likeliest(found, head, whole):
    """The first of some candidates that the whole of head may be in, with the next one where that is nearly as likely and gives another text."""
    fit = [(name, points, text) for name, points in found[:8] if (text := decoded(head, name, whole)) is not None and printable(text)]
    if not fit:
        return None
    best = Encoding(fit[0][0])
    for name, points, text in fit[1:]:
        if points * SURE > fit[0][1] and text != fit[0][2]:
            best.other = name
            break
    return best


def candidates(head, whole):
    """The encodings that a text may be in, the likeliest one first, each with how likely it is."""
    sample = head[:SAMPLE_OF_TEXT]
    whole = whole and len(sample) == len(head)
    try:
        import chardet
        found = by_chardet(sample, whole) if int(chardet.__version__.split(".")[0]) >= 7 else None
    except Exception:  # it looks at anything that people have
        found = None
    if found is None:
        found = {name: (plausible(text, name) + 1) * (1.1 if name == "cp1252" else 1) for name in FEW if (text := decoded(sample, name, whole)) is not None and printable(text)}
        east_asian(sample, whole, found)
    return sorted(found.items(), key=lambda f: -f[1])


# The encodings of texts that people have, and some of their other names.
KNOWN = ("gb18030", "big5", "cp932", "cp949", "euc-jp", "cp1251", "koi8-r", "cp866", "cp1252", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874", "cp850", "mac-roman", "iso8859-2",
         "iso8859-15")
ALIKE = {"big5hkscs": "big5", "shift_jis": "cp932", "shift_jis_2004": "cp932", "euc_jis_2004": "euc_jp", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "koi8-u": "koi8-r",
         "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
# How much likelier than the others an encoding is where chardet is as sure of both.
WEIGHTS = {"cp1252": 1.4, "cp1254": 1.35, "cp850": 0.85, "mac-roman": 0.85, "iso8859-2": 0.9, "iso8859-15": 0.9, "cp866": 0.9}
SAMPLE_OF_TEXT, SAMPLE_OF_LETTERS = 64 << 10, 16 << 10


def by_chardet(sample, whole):
    import chardet
    import codecs
    found = {}
    for d in chardet.detect_all(sample, prefer_superset=True, include_encodings=KNOWN, ignore_threshold=True):
        name = codecs.lookup(d["encoding"]).name
        name = ALIKE.get(name, name)
        text = decoded(sample, name, whole)
        if text is not None and printable(text):
            found[name] = max(found.get(name, 0), d["confidence"] * WEIGHTS.get(name, 1) * (1 - odd(text[:SAMPLE_OF_LETTERS])) ** 2)
    text = decoded(sample, "cp1252", whole) or ""
    if "cp1250" in found and SLAVIC.intersection(text) and WESTERN.intersection(text):
        found["cp1252"] = found.get("cp1252", 0) * 0.4  # no language has both, but those of Central Europe have what both stand for in theirs
    east_asian(sample, whole, found)
    return found


SLAVIC, WESTERN = frozenset("šžŠŽ"), frozenset("ìèøùæêñ")
NEVER_FIRST = "£¥¢¤¯¹²³¼½¾¨´¸¦¬"  # signs that no letter follows


def odd(text):
    """The share of what is beyond ASCII in a text that nobody writes so: capital letters after small ones, and signs within words."""
    beyond = strange = 0
    for before, c, after in zip(" " + text, text, text[1:] + " "):
        if c < "\x80":
            strange += c.isupper() and before >= "\x80" and before.islower()
            continue
        beyond += 1
        if c.isalpha():
            strange += c.isupper() and (before.islower() or before.isalpha() and after.islower())
        elif c not in "’·\u00ad\u200c\u200d" and not unicodedata.combining(c):
            strange += after.isalpha() and (before.isalpha() or c in NEVER_FIRST) or c in "¿¡" and before.isalpha()
    return min(strange / max(beyond, 1), 1)


def east_asian(sample, whole, found):
    """Corrects what is said of encodings whose bytes are much alike, by what their texts are made of."""
    def share(name, is_one, of=lambda c: c >= "\x80"):
        beyond = [c for c in decoded(sample, name, whole) or "" if of(c)]
        return sum(map(is_one, beyond)) / len(beyond) if len(beyond) > 1 else 0

    def hangul(c):
        return "\uac00" <= c <= "\ud7a3"

    if share("cp932", lambda c: "\u3041" <= c <= "\u30fe") > 0.4:
        found["cp932"] = max(max(found.values(), default=1) * 2, found.get("cp932", 0))
    if "cp949" in found and "gb18030" in found:
        if share("cp949", hangul, lambda c: "\u3400" <= c <= "\u9fff" or hangul(c)) < 0.9:
            found["cp949"] *= 0.3  # Korean is written without Chinese characters, but for single ones
        else:
            found["gb18030"] *= 0.5


# What is tried without chardet, in the order in which they are taken where a text is as good in two of them.
FEW = ("gb18030", "big5", "cp932", "cp949", "cp1252", "cp1251", "koi8-r", "cp1250", "latin-1")


def decoded(head, name, whole):
    """A text whose last character may be cut off where there is more of it; None where it is none of that encoding."""
    for end in range(len(head), max(len(head) - 4, 0) - 1 if not whole else len(head) - 1, -1):
        try:
            return head[:end].decode(name)
        except UnicodeDecodeError:
            continue
    return None


def printable(text):
    return sum(1 for c in text if ord(c) < 32 and c not in "\t\n\r\f\x1b\b") <= len(text) // 50


def plausible(text, name):
    """How much what is beyond ASCII in a text looks like what people write: 1 at best."""
    points, beyond, before = 0.0, 0, " "
    for c in text[:SAMPLE_OF_LETTERS]:
        if c >= "\x80":
            beyond += 1
            if "\u3041" <= c <= "\u30fe" or c in "，。、；：？！（）「」《》“”％·—…￥":
                points += 1
            elif "\u3400" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3":
                points += usual(c, name)
            elif "\u0400" <= c <= "\u045f":
                points += 0.9 if (c.islower() or not before.isalpha()) and (before < "\x80" or "\u0400" <= before <= "\u045f") else 0
            elif "\xc0" <= c <= "\u017f":
                points += 0.9 if before < "\x80" and not (c.isupper() and before.isalpha()) else 0.1  # letters with accents stand alone
            elif c in "€£°–’‘‚„•§±²³µ½«»ºª¡¿ßœ\u00a0":
                points += 0.6
            else:
                points -= 1
        before = c
    return points / max(beyond, 1)


# Where the characters of everyday use begin and end in the sets of characters that an encoding goes back to, by their first byte.
EVERYDAY = {"gb18030": ("gb2312", 0xB0, 0xD7), "big5": ("big5", 0xA4, 0xC6), "cp949": ("euc_kr", 0xB0, 0xC8), "cp932": ("shift_jis", 0x88, 0x97)}


def usual(c, name):
    charset, first, last = EVERYDAY.get(name, ("ascii", 1, 0))
    try:
        return 0.95 if first <= c.encode(charset)[0] <= last else 0.4
    except UnicodeEncodeError:
        return 0
