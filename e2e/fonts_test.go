package e2e_test

import (
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// drawings counts the pictures of four texts of one length, which are one where boxes are drawn.
const drawings = `def pictures(draw):
    print(len({draw(text) for text in ("你好世界", "臺北機場", "さくらん", "한국어요")}))
`

// drawnByInstalled are programs with libraries that are installed for them: what the environment has itself, the tests of package session draw with.
var drawnByInstalled = map[string]string{
	"OpenCV": `%pip install "opencv-python-headless<5"
import cv2, numpy
def draw(text):
    image = numpy.zeros((80, 400, 3), numpy.uint8)
    cv2.putText(image, text, (10, 50), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 255), 2)
    assert image[..., 2].any() and not image[..., :2].any()
    return image.tobytes()
grey = numpy.zeros((60, 200), numpy.uint8)
for place in (-20, 10), (150, 70), (500, 500):
    cv2.putText(grey, text="边缘", org=place, fontFace=0, fontScale=2, color=255)
assert grey.any() and cv2.getTextSize("你好", 0, 1, 2)[0] == (60, 26), cv2.getTextSize("你好", 0, 1, 2)
pictures(draw)`,
	"OpenCV, newer": `import cv2, numpy
def draw(text):
    image = numpy.zeros((80, 400, 3), numpy.uint8)
    cv2.putText(image, text, (10, 50), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 255), 2)
    return image.tobytes()
assert int(cv2.__version__.split(".")[0]) >= 5
others = "हिन्दी", "नमस्ते", "ภาษาไ", "สวัสดี", "📈📈", "✅✅", "שלום", "مرحب"
assert len(set(map(draw, others))) == len(others) and draw("שלום") != draw("םולש")
assert draw("हि") not in (draw("??"), draw("?"))
pictures(draw)`,
	"WeasyPrint": `import pypdfium2
from weasyprint import HTML
pictures(lambda text: pypdfium2.PdfDocument(HTML(string="<p style='font-family: SimHei'>" + text).write_pdf())[0].render(scale=1).to_pil().tobytes())`,
}

// TestTextDrawnByInstalled draws letters that the libraries' own fonts lack.
func TestTextDrawnByInstalled(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, program := range drawnByInstalled {
		c := newCommand(t, "run", "--packages", "standard", "-c", drawings+program)
		if r := c.run(); r.code != 0 || !strings.HasSuffix(r.stdout, "4\n") {
			t.Errorf("%s: exit code %d\n%s\n%s", name, r.code, r.stdout, r.stderr)
		}
	}
}
