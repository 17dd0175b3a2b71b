# Pinyin, simplified to traditional, and clean text.
import ftfy
from opencc import OpenCC
from pypinyin import Style, lazy_pinyin
from unidecode import unidecode

print(lazy_pinyin("中国北京"), lazy_pinyin("中国", style=Style.TONE))
print(OpenCC("s2t").convert("汉语软件"), unidecode("Łódź"), ftfy.fix_text("cafÃ©"))
