"""Gives matplotlib a font with Chinese, Japanese and Korean glyphs.

Run by the environment's Python as: fonts.py PACKAGE, where PACKAGE is a folder
into which the font package was unpacked, with MPLCONFIGDIR set to a scratch folder.

Writes into the environment: the font files (beside matplotlib's own, since
matplotlib stores the paths of those relative to itself), the fallback in
matplotlib's font_manager.py, etc/matplotlib/fontlist-*.json and share/fonts.
Ends with an error when labels would still have boxes.
"""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
from fontTools.ttLib import TTFont
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

# File names by which programs open a font with Pillow or wordcloud.
FILES = [
    "simhei.ttf", "SimHei.ttf", "simsun.ttc", "msyh.ttc", "msyh.ttf", "wqy-microhei.ttc", "NotoSansCJK-Regular.ttc",
    "NotoSansSC-Regular.otf", "malgun.ttf", "NanumGothic.ttf", "msgothic.ttc", "meiryo.ttc", "ipaexg.ttf",
]

# Appended to matplotlib/font_manager.py. Matplotlib takes one font of "sans-serif" and the like, and styles and
# programs choose that freely; whichever it is, the glyphs that it lacks now come from the fallback.
PATCH = f'''

# Added when cove built this environment: the last font for every text is one with Chinese, Japanese and Korean glyphs.
def _with_fallback(find):
    def find_fonts(self, prop, fontext="ttf", *args, **kwargs):
        fonts = find(self, prop, fontext, *args, **kwargs)
        if fontext == "ttf":
            try:
                last = self.findfont(FontProperties(family={FALLBACK!r}), fallback_to_default=False)
            except ValueError:
                return fonts
            if last not in fonts:
                fonts.append(last)
        return fonts

    return find_fonts


FontManager._find_fonts_by_props = _with_fallback(FontManager._find_fonts_by_props)
'''


def extract(package, folder):
    """Writes the faces of the collection in package as single fonts into folder."""
    collection = next(package.rglob("NotoSansCJK-Regular.ttc"))
    number = 0
    missing = dict(FACES)
    while missing:
        font = TTFont(collection, fontNumber=number, lazy=True, recalcTimestamp=False, recalcBBoxes=False)
        name = missing.pop(font["name"].getDebugName(1), None)
        if name:
            font.save(folder / name)
        number += 1
    for licence in package.rglob("LICENSE*"):
        shutil.copyfile(licence, folder / "LICENSE_NOTO_SANS_CJK")


def build_list():
    """Returns a font manager that knows the environment's fonts and the aliases, and none of the machine's."""
    find = font_manager.findSystemFonts
    font_manager.findSystemFonts = lambda fontpaths=None, fontext="ttf": find(fontpaths, fontext) if fontpaths else []
    manager = font_manager.FontManager()
    for face, aliases in ALIASES.items():
        entry = next(e for e in manager.ttflist if e.name == face)
        names = [" ".join(alias.split()) for alias in aliases.split("|")]
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
    plt.figure().text(0, 0, "\\u4e2d\\u6587 \\u65e5\\u672c\\u8a9e \\ud55c\\uad6d\\uc5b4 \\u22125", family=family, weight="bold")
    plt.savefig(io.BytesIO(), format="png")
"""


def check(cache):
    """Draws with the fonts in a fresh Python; a missing glyph is an error."""
    for file in cache.iterdir():
        shutil.copy(file, os.environ["MPLCONFIGDIR"])
    subprocess.run([sys.executable, "-I", "-c", CHECK], check=True)


def main():
    package = Path(sys.argv[1])
    prefix = Path(sys.prefix)
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    extract(package, folder)

    cache = prefix / "etc" / "matplotlib"
    cache.mkdir(parents=True, exist_ok=True)
    name = f"fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(build_list(), cache / name)
    if str(prefix) in (cache / name).read_text():
        sys.exit("the font list holds absolute paths")

    shared = prefix / "share" / "fonts"
    shared.mkdir(parents=True, exist_ok=True)
    for file in FACES.values():
        os.link(folder / file, shared / file)
    for file in FILES:
        os.symlink(FACES[FALLBACK], shared / file)
    patch()
    check(cache)


main()
