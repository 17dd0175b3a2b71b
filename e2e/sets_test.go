package e2e_test

import (
	"strings"
	"testing"
)

// of2024 is code of its time: each line breaks with the standard environment's versions.
const of2024 = `import warnings; warnings.simplefilter("ignore")
import numpy as np, pandas as pd
df = pd.DataFrame({"a": [1, 2], "s": ["x", None]}, index=pd.to_datetime(["2024-01-31", "2024-02-29"]))
print(df.applymap(str).shape, df.a.resample("M").sum().tolist(), df.s.fillna(method="ffill").tolist(), df.s.dtype)
print(np.float_(3), np.trapz([1, 2, 3]), np.in1d([1], [1]), np.row_stack([[1], [2]]).shape)
from sklearn.linear_model import LogisticRegression
print(LogisticRegression(multi_class="ovr").fit([[0], [1]], [0, 1]).predict([[1]]))
import matplotlib.pyplot as plt, seaborn, scipy.stats, statsmodels.api
plt.plot([1, 2]); plt.title("中文"); plt.savefig("plot.png")
`

// TestStandard2024 runs code that must not change in the environment that does not change with the others.
func TestStandard2024(t *testing.T) {
	t.Parallel()
	run := func(args ...string) result {
		t.Helper()
		c := newCommand(t, args...)
		c.setenv("COVE_PACKAGES=standard-2024")
		c.bound = 4 * patience // the first builds the environment, beside all other tests
		return c.run()
	}
	r := run("run", "-c", of2024)
	want := "(2, 2) [1, 2] ['x', 'x'] object\n3.0 4.0 [ True] (2, 1)\n[1]\n"
	if r.code != 0 || !strings.HasPrefix(r.stdout, want) {
		t.Errorf("exit code %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	if r := run("run", "-c", "import numpy, pandas; print(numpy.__version__, pandas.__version__)"); r.stdout != "1.26.4 2.2.3\n" && !strings.HasPrefix(r.stdout, "2.1.") {
		t.Errorf("it has %s%s", r.stdout, r.stderr)
	}
	const draws = `import io, pypdfium2
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen.canvas import Canvas
def image(text):
    image = Image.new("L", (300, 60))
    ImageDraw.Draw(image).text((2, 2), text, 255, ImageFont.truetype("simhei.ttf", 24))
    return image.tobytes()
def page(text):
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(300, 60))
    canvas.drawString(10, 20, text)
    canvas.save()
    return pypdfium2.PdfDocument(out.getvalue())[0].render(scale=1).to_pil().tobytes()
pictures(image)
pictures(page)`
	if r := run("run", "-c", drawings+draws); r.stdout != "4\n4\n" {
		t.Errorf("of four texts it draws %s%s", r.stdout, r.stderr)
	}
	// Hints, tables and charts are the kernel's own work, for which it knows libraries.
	if r := run("run", "-c", "import pandas as pd\ndf = pd.DataFrame({'sales': [1]})\nprint(df)\ndf['salse']"); !strings.Contains(r.stderr, "Hint: Did you mean 'sales'?") {
		t.Errorf("a misspelt column: %s", r.stderr)
	}
	if r := run("packages", "ls", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"standard-2024"`) {
		t.Errorf("cove packages ls says %s%s", r.stdout, r.stderr)
	}
	if r := newCommand(t, "run", "--packages", "standard-2023", "-c", "1").run(); r.code != 125 && r.code != 2 || !strings.Contains(r.stderr, "standard-2024") {
		t.Errorf("an unknown set: exit code %d, %s", r.code, r.stderr)
	}
}
