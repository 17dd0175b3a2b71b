"""Gives matplotlib, and other programs that draw, fonts with Chinese, Japanese and Korean glyphs, with those of other scripts, and with emoji.

Run by the environment's Python as: fonts.py PACKAGES, where PACKAGES is a folder
into which the packages with fonts were unpacked, with MPLCONFIGDIR set to a scratch folder.

Writes into the environment: the font files (beside matplotlib's own, since
matplotlib stores the paths of those relative to itself), the fallback in
matplotlib's font_manager.py, etc/matplotlib/fontlist-*.json, share/fonts with the
same files and cjk.ttf, which cove_fonts.py has other libraries open, and
etc/fonts/fonts.conf for programs with fontconfig.
Ends with an error when labels would still have boxes.
"""

import copy
import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont
from fontTools.ttLib.scaleUpem import scale_upem
from fontTools.varLib import instancer
from matplotlib import font_manager

FACES = {
    "Noto Sans CJK SC": "NotoSansCJKsc-Regular.otf",
    "Noto Sans CJK TC": "NotoSansCJKtc-Regular.otf",
    "Noto Sans CJK JP": "NotoSansCJKjp-Regular.otf",
    "Noto Sans CJK KR": "NotoSansCJKkr-Regular.otf",
}
FALLBACK = "Noto Sans CJK SC"

# Names under which programs ask for such fonts, or for a plain sans serif font that
# styles put first (seaborn's begin with Arial): without these, labels become boxes.
ALIASES = {
    "Noto Sans CJK SC": """
        SimHei|SimSun|NSimSun|SimKai|KaiTi|FangSong|YouYuan|LiSu|DengXian|SimSun-ExtB|STHeiti|STXihei|STSong|STKaiti
        |STFangsong|STHupo|Heiti SC|Songti SC|Kaiti SC|PingFang SC|PingFang|Hiragino Sans GB|Lantinghei SC|Microsoft YaHei
        |Microsoft YaHei UI|MS YaHei|MicrosoftYaHei|WenQuanYi Micro Hei|WenQuanYi Micro Hei Mono|WenQuanYi Zen Hei
        |WenQuanYi Zen Hei Mono|WenQuanYi Bitmap Song|Source Han Sans|Source Han Sans CN|Source Han Sans SC|SourceHanSansSC
        |SourceHanSansCN|Source Han Serif SC|Source Han Serif CN|Noto Sans SC|Noto Serif SC|Noto Serif CJK SC
        |Noto Sans Mono CJK SC|Noto Sans CJK|NotoSansCJK|NotoSansCJKsc|Noto Sans CJK SC Regular|Noto Sans Mono CJK
        |Droid Sans Fallback|AR PL UMing CN|AR PL UKai CN|Sarasa Gothic SC|LXGW WenKai|Alibaba PuHuiTi|HarmonyOS Sans SC
        |MiSans|FZHei-B01S|FZLanTingHei-R-GBK|Adobe Heiti Std|Arial Unicode MS|Unifont|Arial|Helvetica|Helvetica Neue""",
    "Noto Sans CJK TC": """
        Microsoft JhengHei|Microsoft JhengHei UI|MicrosoftJhengHei|PMingLiU|MingLiU|DFKai-SB|PingFang TC|PingFang HK|Heiti TC
        |Songti TC|Kaiti TC|LiHei Pro|LiSong Pro|BiauKai|Source Han Sans TC|Source Han Sans TW|Source Han Sans HK|Noto Sans TC
        |Noto Sans HK|Noto Serif TC|Noto Serif CJK TC|Noto Sans CJK HK|Noto Sans Mono CJK TC|AR PL UMing TW|AR PL UKai TW
        |Taipei Sans TC Beta""",
    "Noto Sans CJK JP": """
        MS Gothic|MS PGothic|MS UI Gothic|MS Mincho|MS PMincho|Meiryo|Meiryo UI|Yu Gothic|Yu Gothic UI|YuGothic|Yu Mincho
        |YuMincho|Hiragino Sans|Hiragino Kaku Gothic Pro|Hiragino Kaku Gothic ProN|Hiragino Maru Gothic Pro
        |Hiragino Maru Gothic ProN|Hiragino Mincho ProN|Osaka|IPAGothic|IPAPGothic|IPAexGothic|IPAMincho|IPAexMincho|TakaoGothic
        |TakaoPGothic|TakaoExGothic|VL Gothic|VL PGothic|BIZ UDGothic|UD Digi Kyokasho N-R|MotoyaLCedar|Source Han Sans JP
        |Noto Sans JP|Noto Serif JP|Noto Serif CJK JP|Noto Sans Mono CJK JP""",
    "Noto Sans CJK KR": """
        Malgun Gothic|NanumGothic|Nanum Gothic|NanumBarunGothic|Nanum Barun Gothic|NanumSquare|NanumSquareRound|NanumMyeongjo
        |NanumGothicCoding|Nanum Gothic Coding|AppleGothic|AppleMyungjo|Apple SD Gothic Neo|Gulim|GulimChe|Dotum|DotumChe|Batang
        |Gungsuh|UnDotum|UnBatang|Baekmuk Gulim|Source Han Sans KR|Source Han Sans K|Noto Sans KR|Noto Serif KR
        |Noto Serif CJK KR|Noto Sans Mono CJK KR|Pretendard""",
}

# One TrueType font for libraries that take a single file and read no PostScript outlines: Noto Sans SC, which has the ideographs of all of GBK, Big5 and JIS, with the syllables of NanumGothic.
TRUETYPE = "cjk.ttf"
HANGUL = ((0x1100, 0x1200), (0x3130, 0x3190), (0xA960, 0xA980), (0xAC00, 0xD800), (0xFFA0, 0xFFDD))

# Fonts of other scripts, after which matplotlib looks in this order, and names under which programs ask for such fonts. Each has Latin letters, too: a library that takes one font for a text draws both.
SCRIPTS = {
    "Noto Sans Arabic": "Noto Naskh Arabic|Noto Kufi Arabic|Amiri|Geeza Pro|Traditional Arabic|Simplified Arabic|Vazirmatn|Vazir|Scheherazade",
    "Noto Sans Hebrew": "David|David Libre|Frank Ruehl|Heebo|Rubik|Assistant",
    "Noto Sans Thai": "Noto Serif Thai|Sarabun|TH Sarabun New|THSarabunNew|Loma|Garuda|Leelawadee UI|Leelawadee|Angsana New|Cordia New|Kanit|Prompt",
    "Noto Sans Devanagari": "Noto Serif Devanagari|Mangal|Nirmala UI|Kokila|Aparajita|Lohit Devanagari|Kohinoor Devanagari|Devanagari MT|Mukta",
    "Noto Sans Bengali": "", "Noto Sans Tamil": "", "Noto Sans Telugu": "", "Noto Sans Gujarati": "", "Noto Sans Gurmukhi": "", "Noto Sans Kannada": "", "Noto Sans Malayalam": "",
    "Noto Sans Oriya": "", "Noto Sans Sinhala": "", "Noto Sans Lao": "", "Noto Sans Khmer": "", "Noto Sans Myanmar": "", "Noto Sans Ethiopic": "", "Noto Sans Georgian": "",
    "Noto Sans Armenian": "", "Noto Sans Symbols": "Segoe UI Symbol|Symbola|Apple Symbols|Noto Sans Symbols 2|Noto Sans Symbols2",
    "Noto Emoji": "Segoe UI Emoji|Apple Color Emoji|Noto Color Emoji|Twitter Color Emoji|EmojiOne Color|JoyPixels|OpenMoji",
}
LATIN = (*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x2010, 0x2027), 0x20AC, 0x2212)

# The places where a sandbox and a process of the host see the environment. Programs that find no letter in the font which they ask for take it from another of these folders.
FONTCONFIG = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>/opt/cove/python/share/fonts</dir>
  <dir prefix="relative">../../share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <dir prefix="xdg">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <include ignore_missing="yes">/etc/fonts/conf.d</include>
</fontconfig>
"""

# Appended to matplotlib/font_manager.py. Matplotlib takes one font of "sans-serif" and the like, and styles and
# programs choose that freely; whichever it is, the glyphs that it lacks now come from the fallback.
PATCH = f'''

# Added when cove built this environment: the last fonts for every text are those with Chinese, Japanese and Korean glyphs, with other scripts' and with emoji.
@lru_cache(4)
def _last_fonts(manager):
    found = []
    for family in {(FALLBACK, *SCRIPTS)!r}:
        try:
            found.append(manager.findfont(FontProperties(family=family), fallback_to_default=False))
        except ValueError:
            pass
    return found


def _with_fallback(find):
    def find_fonts(self, prop, fontext="ttf", *args, **kwargs):
        fonts = find(self, prop, fontext, *args, **kwargs)
        return fonts + [last for last in _last_fonts(self) if last not in fonts] if fontext == "ttf" else fonts

    return find_fonts


FontManager._find_fonts_by_props = _with_fallback(FontManager._find_fonts_by_props)
'''


def extract(packages, folder):
    """Writes the faces of the collection in packages as single fonts into folder."""
    collection = next(packages.rglob("NotoSansCJK-Regular.ttc"))
    number = 0
    missing = dict(FACES)
    while missing:
        font = TTFont(collection, fontNumber=number, lazy=True, recalcTimestamp=False, recalcBBoxes=False)
        name = missing.pop(font["name"].getDebugName(1), None)
        if name:
            font.save(folder / name)
        number += 1
    for licence in next(packages.glob("noto_cjk_sans_otc-*")).rglob("LICENSE*"):
        shutil.copyfile(licence, folder / "LICENSE_NOTO_SANS_CJK")


def add_glyphs(font, other, codes, prefix):
    """Adds the glyphs of another font for code points that a font has none for. Both have the same units."""
    glyphs, theirs, names = font["glyf"], other["glyf"], other.getBestCmap()
    order = font.getGlyphOrder()[:]

    def add(name):
        """Copies a glyph with those that it is composed of, and returns its name here."""
        here = prefix + name
        if here not in glyphs.glyphs:
            glyph = copy.deepcopy(theirs[name])
            glyph.removeHinting()
            for part in glyph.components if glyph.isComposite() else ():
                part.glyphName = add(part.glyphName)
            glyphs.glyphs[here] = glyph
            order.append(here)
            font["hmtx"][here] = other["hmtx"][name]
            if "vmtx" in font:
                font["vmtx"][here] = font["head"].unitsPerEm, font["OS/2"].sTypoAscender - max(getattr(glyph, "yMax", 0), 0)
        return here

    here = font.getBestCmap()
    new = {code: add(names[code]) for code in codes if code in names and code not in here}
    for table in font["cmap"].tables:
        if table.isUnicode() and table.format in (4, 12):
            table.cmap.update(new)
    font.setGlyphOrder(order)
    for name in ("maxPoints", "maxContours", "maxCompositePoints", "maxCompositeContours", "maxComponentElements", "maxComponentDepth"):
        setattr(font["maxp"], name, max(getattr(font["maxp"], name), getattr(other["maxp"], name)))


def build_scripts(packages, folder):
    """Writes a font for each of the other scripts, of one weight and with Latin letters."""

    def regular(family):
        source = next(packages.rglob(family.replace(" ", "") + "[[]wght].ttf"))
        font = TTFont(source, recalcTimestamp=False)
        instancer.instantiateVariableFont(font, {"wght": 400}, inplace=True)
        for table in ("vmtx", "vhea", "VORG"):  # of vertical text
            if table in font:
                del font[table]
        return font

    latin = regular("Noto Sans")
    for family in SCRIPTS:
        font = regular(family)
        if font["head"].unitsPerEm != latin["head"].unitsPerEm:
            scale_upem(font, latin["head"].unitsPerEm)
        for table in font["cmap"].tables if family == "Noto Emoji" else ():
            for code in LATIN if table.isUnicode() and table.format in (4, 12) else ():
                table.cmap.pop(code, None)  # its digits and spaces are as wide as pictures
        add_glyphs(font, latin, LATIN, "latin.")
        for record in font["name"].names:
            if record.nameID in (1, 4, 6, 16):
                record.string = family.replace(" ", "") + "-Regular" if record.nameID == 6 else family
        font.save(folder / (family.replace(" ", "") + ".ttf"))
    for licence in next(packages.glob("manimgx_fonts-*")).rglob("LICENSE*"):
        shutil.copyfile(licence, folder / "LICENSE_NOTO_SCRIPTS")


def build_truetype(packages, path):
    """Writes the one TrueType font."""
    font = TTFont(next(packages.rglob("NotoSansSC-Regular.ttf")), recalcTimestamp=False, recalcBBoxes=False)
    korean = TTFont(next(packages.rglob("NanumGothic.ttf")))
    if font["head"].unitsPerEm != korean["head"].unitsPerEm:
        sys.exit("the fonts with Chinese and Korean glyphs have other units")
    add_glyphs(font, korean, [code for first, end in HANGUL for code in range(first, end)], "ko.")
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16):
            record.string = "CJKSans-Regular" if record.nameID == 6 else "CJK Sans"
    font.save(path)
    licence = next(packages.rglob("OFL.txt")).read_text(encoding="utf-8")
    notice = "%s: %s\nIts Korean syllables: %s\n%s\n\n" % (TRUETYPE, font["name"].getDebugName(0), korean["name"].getDebugName(0), font["name"].getDebugName(13))
    path.with_name("LICENSE_CJK").write_text(notice + licence, encoding="utf-8")


def build_list():
    """Returns a font manager that knows the environment's fonts and the aliases, and none of the machine's."""
    find = font_manager.findSystemFonts
    font_manager.findSystemFonts = lambda fontpaths=None, fontext="ttf": find(fontpaths, fontext) if fontpaths else []
    manager = font_manager.FontManager()
    for face, aliases in {**ALIASES, **SCRIPTS}.items():
        entry = next(e for e in manager.ttflist if e.name == face)
        names = [" ".join(alias.split()) for alias in aliases.split("|") if alias]
        # Bold and italic as well: matplotlib warns, or prefers another family, when it finds only the regular weight.
        for name in [face, *names]:
            for weight in (400, 700):
                for style in ("normal", "italic"):
                    twin = dataclasses.replace(entry, name=name, weight=weight, style=style)
                    if twin != entry:
                        manager.ttflist.append(twin)
    return manager


def patch():
    """Adds the fallback. The file may be a hard link into the installer's cache, so it is replaced, not edited."""
    path = Path(font_manager.__file__)
    changed = path.with_suffix(".tmp")
    changed.write_text(path.read_text(encoding="utf-8") + PATCH, encoding="utf-8")
    os.replace(changed, path)


CHECK = """
import io, warnings
import matplotlib.pyplot as plt
warnings.simplefilter("error")
for family in (["sans-serif"], ["serif"], ["monospace"], ["SimHei"], ["Malgun Gothic"], ["IPAexGothic"]):
    plt.figure().text(0, 0, "\\u4e2d\\u6587 \\u65e5\\u672c\\u8a9e \\ud55c\\uad6d\\uc5b4 \\u22125 \U0001f4c8\u2705\u2764\ufe0f \u0e44\u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629", family=family, weight="bold")
    plt.savefig(io.BytesIO(), format="png")
"""


def check(cache):
    """Draws with the fonts in a fresh Python; a missing glyph is an error."""
    for file in cache.iterdir():
        shutil.copy(file, os.environ["MPLCONFIGDIR"])
    subprocess.run([sys.executable, "-I", "-c", CHECK], check=True)


def main():
    packages = Path(sys.argv[1])
    prefix = Path(sys.prefix)
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    extract(packages, folder)
    build_scripts(packages, folder)

    cache = prefix / "etc" / "matplotlib"
    cache.mkdir(parents=True, exist_ok=True)
    name = f"fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(build_list(), cache / name)
    if str(prefix) in (cache / name).read_text():
        sys.exit("the font list holds absolute paths")

    shared = prefix / "share" / "fonts"
    shared.mkdir(parents=True, exist_ok=True)
    for file in [*FACES.values(), *(family.replace(" ", "") + ".ttf" for family in SCRIPTS)]:
        os.link(folder / file, shared / file)
    build_truetype(packages, shared / TRUETYPE)
    config = prefix / "etc" / "fonts" / "fonts.conf"
    config.parent.mkdir()
    config.write_text(FONTCONFIG, encoding="utf-8")
    patch()
    check(cache)


main()
