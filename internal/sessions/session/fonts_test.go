package session_test

import (
	"strings"
	"testing"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/sandboxtest"
	"cove/internal/python/kernel"
	"cove/internal/testkit/testneeds"
)

// drawing counts the pictures that a function makes of four texts of one length: boxes in the place of letters look alike.
const drawing = `import io
from PIL import Image, ImageDraw, ImageFont
import pypdfium2

def pictures(draw):
    return len({draw(text) for text in ("你好世界", "臺北機場", "さくらん", "한국어요")})

def ink(text, font=None, **options):
    image = Image.new("L", (300, 60))
    ImageDraw.Draw(image).text((2, 2), text, 255, font, **options)
    return image.tobytes()

def page(pdf):
    return pypdfium2.PdfDocument(pdf)[0].render(scale=1).to_pil().tobytes()
`

const reports = `from reportlab.pdfbase import pdfmetrics, ttfonts
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table
from reportlab.lib.styles import getSampleStyleSheet

def drawn(text, font):
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(300, 60))
    canvas.setFont(font, 20)
    canvas.drawString(10, 20, text + " and " + text)
    canvas.save()
    return page(out.getvalue())

def written(text):
    out, styles = io.BytesIO(), getSampleStyleSheet()
    SimpleDocTemplate(out).build([Paragraph("2024 <b>%s</b>" % text, styles["Title"]), Table([[text, 1]])])
    return page(out.getvalue())
`

// scripts draws texts of many scripts with matplotlib, where a letter that no font has is an error.
const scripts = `import matplotlib.pyplot as plt, warnings
warnings.filterwarnings("error", message="Glyph")
texts = "📈 ✅ ❤️ 👍🏽 🇩🇪 👩‍💻 ภาษาไทย हिन्दी العربية עברית বাংলা தமிழ் తెలుగు ગુજરાતી ਪੰਜਾਬੀ ಕನ್ನಡ മലയാളം ଓଡ଼ିଆ සිංහල ລາວ ខ្មែរ မြန်မာ አማርኛ ქართული Հայերեն Ελληνικά Кириллица".split()
families = ["sans-serif", "serif", "monospace", "SimHei", "Segoe UI Emoji", "Sarabun"]
def chart(text, family):
    out = io.BytesIO()
    plt.figure(figsize=(3, 1)).text(0.1, 0.5, text, family=family)
    plt.savefig(out)
    plt.close()
    return out.getvalue()
`

// joined looks at what is drawn of letters that look otherwise beside others: they take less room, and of Arabic the first is at the right, where its stroke is the tallest.
const joined = `import numpy as np
def tallest(picture):
    marks = np.asarray(picture.convert("L"), dtype=int)
    marks = abs(marks - marks[0, 0]) > 100
    columns = np.flatnonzero(marks.any(axis=0))
    return columns[marks.argmax(axis=0)[columns].argmin()] > 0.6 * columns[0] + 0.4 * columns[-1]

def width(picture):
    box = picture.point(lambda v: 255 * (abs(v - picture.getpixel((0, 0))) > 100)).getbbox()
    return box[2] - box[0]

def in_pillow(text):
    image = Image.new("L", (400, 80))
    ImageDraw.Draw(image).text((20, 10), text, 255, font_size=40)
    return image

def in_pdf(pdf):
    return pypdfium2.PdfDocument(pdf)[0].render(scale=2).to_pil().convert("L")

def in_reportlab(text, font="Helvetica"):
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(800, 40))
    canvas.setFont(font, 20)
    canvas.drawString(10, 15, text)
    canvas.save()
    return in_pdf(out.getvalue())

def in_fpdf(text):
    pdf = FPDF(unit="pt", format=(200, 40))
    pdf.set_margin(0)
    pdf.add_page()
    pdf.add_font("Arial", fname="arial.ttf")
    pdf.set_font("Arial", size=20)
    pdf.cell(0, 30, text)
    return in_pdf(bytes(pdf.output()))

def in_matplotlib(text):
    out = io.BytesIO()
    plt.figure(figsize=(4, 1)).text(0.1, 0.4, text, size=30)
    plt.savefig(out)
    plt.close()
    return Image.open(io.BytesIO(out.getvalue())).convert("L")

def right(draw):
    """The names of what is not as it is written by hand."""
    return {name for name, is_right in {
        "Arabic begins at the right": tallest(draw("اب")) and not tallest(draw("با")),
        "Arabic is joined": width(draw("ببب")) < 2.4 * width(draw("ب")),
        "Hebrew begins at the right": tallest(draw("לוו")) and not tallest(draw("וול")),
        "Devanagari has conjuncts": width(draw("क्ष")) < 0.8 * width(draw("कष")),
        "Thai has its marks above": abs(width(draw("ที่")) - width(draw("ท"))) < 0.4 * width(draw("ท")),
    }.items() if not is_right}
`

// TestDrawnText has libraries that draw, each with a font that it knows and with those that programs ask for, draw letters that their own fonts lack.
func TestDrawnText(t *testing.T) {
	testneeds.FullTier(t)
	onEachEngine(t, func(t *testing.T, e sandbox.Engine) {
		s := open(t, e, sandbox.Limits{})
		runCell(t, s, code(drawing, "ok"))
		runRows(t, s, []row{
			{"Pillow without a font", []cell{code("print(pictures(ink), pictures(lambda t: ink(t, font_size=30)))", "stdout \"4 4\\n\"\nok")}},
			{"Pillow with fonts of other systems", []cell{code(`for name in "simhei.ttf", "C:\\Windows\\Fonts\\msyh.ttc", "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc", "NotoSansSC[wght].ttf", "cjk.ttf", "arialbd.ttf", "/nowhere/DejaVuSerif-Italic.ttf":
    assert pictures(lambda t: ink(t, ImageFont.truetype(name, 24))) == 4, name
print(ImageFont.truetype("timesbi.ttf", 24).getname())`, "stdout \"('DejaVu Serif', 'Bold Italic')\\n\"\nok")}},
			{"Pillow with a file that nobody knows", []cell{code("try:\n    ImageFont.truetype('nothing.ttf')\nexcept OSError as error:\n    print(error)", "stdout \"cannot open resource\\n\"\nok")}},
			{"sizes of text", []cell{code("print(ImageFont.load_default(20).getlength('你好'), ImageFont.truetype('DejaVuSans.ttf', 20).getbbox('你好')[2] > 35)", "stdout \"40.0 True\\n\"\nok")}},
			{"letters that no font has", []cell{codeLike("_ = ink('𓀀')\n_ = ink('𓀀')", "stderr.*no font here has 𓀀: boxes are drawn instead.*ok")}},
			{"WordCloud", []cell{code("from wordcloud import WordCloud\nprint(pictures(lambda t: WordCloud(random_state=1, max_font_size=40).generate_from_frequencies({t: 1}).to_array().tobytes()))", "stdout \"4\\n\"\nok")}},
			{"reportlab", []cell{
				code(reports+"print(pictures(written), pictures(lambda t: drawn(t, 'Helvetica')), pictures(lambda t: drawn(t, 'Times-Bold')))", "stdout \"4 4 4\\n\"\nok"),
				code(`pdfmetrics.registerFont(ttfonts.TTFont("Hei", "simhei.ttf"))
pdfmetrics.registerFont(ttfonts.TTFont("Noto", "NotoSansCJKsc-Regular.otf"))
pdfmetrics.registerFont(ttfonts.TTFont("Vera", "Vera.ttf"))
print(*(pictures(lambda t: drawn(t, name)) for name in ("Hei", "Noto", "Vera")))`, "stdout \"4 4 4\\n\"\nok"),
				code(`print(pdfmetrics.stringWidth("销售", "Helvetica", 10), round(pdfmetrics.stringWidth("sales 销售", "Helvetica", 10) - pdfmetrics.stringWidth("sales ", "Helvetica", 10), 3))
lines = Paragraph("一个很长的段落，没有空格。" * 20, getSampleStyleSheet()["Normal"])
lines.wrap(430, 800)
print(max(len("".join(words)) for _, words in lines.blPara.lines))`, "stdout \"20.0 20.0\\n43\\n\"\nok"),
			}},
			{"fpdf2", []cell{
				code(`from fpdf import FPDF
def sheet(text):
    pdf = FPDF()
    pdf.add_page()
    pdf.add_font("Song", "", "C:/Windows/Fonts/simsun.ttc")
    pdf.set_font("Song", size=20)
    pdf.cell(0, 10, text)
    return page(bytes(pdf.output()))
print(pictures(sheet))`, "stdout \"4\\n\"\nok"),
				codeCheck("pdf = FPDF()\npdf.add_page()\npdf.set_font('helvetica', size=20)\npdf.cell(0, 10, '你好')", func(t *testing.T, r *run) {
					for _, e := range r.events {
						if failure, ok := e.(kernel.Error); ok && strings.Contains(failure.Hint, "pdf.add_font('CJK', fname='cjk.ttf')") {
							return
						}
					}
					t.Errorf("no hint in %s", r.transcript())
				}),
			}},
			{"matplotlib by the name of a file", []cell{code(`import matplotlib.pyplot as plt, warnings
from matplotlib.font_manager import FontProperties, fontManager
warnings.filterwarnings("error", message="Glyph")
def chart(text):
    out = io.BytesIO()
    plt.figure().text(0.1, 0.5, text, fontproperties=FontProperties(fname="/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc"))
    plt.savefig(out)
    plt.close()
    return out.getvalue()
fontManager.addfont("/System/Library/Fonts/PingFang.ttc")
print(pictures(chart))`, "stdout \"4\\n\"\nok")}},
			{"other scripts and emoji", []cell{
				code(scripts+`print({family: number for family in families if (number := len({chart(text, family) for text in texts})) != len(texts)})`, "stdout \"{}\\n\"\nok"),
				code(`print(len({ink(text) for text in texts}) == len(texts), ink("up 📈") != ink("to 📈"))`, "stdout \"True True\\n\"\nok"),
			}},
			{"letters beside others", []cell{
				code(joined+`import matplotlib.pyplot as plt
from fpdf import FPDF
from PIL import features
print(*(right(draw) for draw in (in_reportlab, in_fpdf, in_matplotlib)), right(in_pillow) if features.check("raqm") else set())`, "stdout \"set() set() set() set()\\n\"\nok"),
				code(`print(len({drawn(text, "Helvetica") for text in texts}) == len(texts), len({written(text) for text in texts}) == len(texts), len({in_fpdf(text).tobytes() for text in texts}) == len(texts))
mixed = "Total 2024: مرحبا بالعالم (a) हिन्दी ภาษา 📈 é Ω"
print(abs(pdfmetrics.stringWidth(mixed, "Helvetica", 20) * 2 - width(in_reportlab(mixed))) < 8)`, "stdout \"True True True\\nTrue\\n\"\nok"),
			}},
			{"programs that code starts", []cell{code(`import subprocess, sys
print(subprocess.run([sys.executable, "-c", "from PIL import ImageFont; print(ImageFont.truetype('msyh.ttc').getname())"], capture_output=True, text=True).stdout)`, "stdout \"('CJK Sans', 'Regular')\\n\\n\"\nok")}},
		})
		if !t.Failed() {
			t.Logf("%sfonts of other scripts, and emoji, in figures, PDFs and pictures: yes", sandboxtest.GivesMark)
		}
	})
}
