package e2e_test

import (
	"strings"
	"testing"

	"cove/internal/llm/model/modeltest"
	"cove/internal/testkit/testneeds"
)

// startedByCode are programs in Python that start others, which come in wheels, and what they print at last.
var startedByCode = map[string]struct{ code, last string }{
	"ffmpeg": {`import numpy as np, matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation
figure, axes = plt.subplots(figsize=(2, 2))
line, = axes.plot([0, 1], [0, 1])
film = FuncAnimation(figure, lambda i: line.set_ydata([0, i]), frames=4)
film.save("film.mp4", fps=2)
from pydub import AudioSegment
from pydub.generators import Sine
Sine(440).to_audio_segment(duration=300).export("tone.mp3", format="mp3")
import subprocess
said = subprocess.run(["ffmpeg", "-i", "film.mp4", "-i", "tone.mp3", "-c:v", "copy", "both.mp4"], capture_output=True, text=True)
print(open("film.mp4", "rb").read(8)[4:], open("tone.mp3", "rb").read(3), said.returncode)`, "b'ftyp' b'ID3' 0"},
	"tesseract": {`from PIL import Image, ImageDraw, ImageFont
import pytesseract
from matplotlib import font_manager
image = Image.new("RGB", (500, 80), "white")
ImageDraw.Draw(image).text((20, 20), "Invoice 2041", fill="black", font=ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 40))
image.save("a.png")
print(pytesseract.image_to_string("a.png").strip())
!tesseract a.png - | grep Invoice`, "Invoice 2041\nInvoice 2041"},
}

// TestProgramsOfWheels starts programs that no package index knows by their names, and that wheels carry.
func TestProgramsOfWheels(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	for name, p := range startedByCode {
		c := newCommand(t, "run", "--packages", "standard", "-o", "out", "-c", p.code)
		if r := c.run(); r.code != 0 || !strings.HasSuffix(strings.TrimSpace(r.stdout), p.last) {
			t.Errorf("%s: exit code %d\n%s\n%s", name, r.code, r.stdout, r.stderr)
		}
	}
}

// TestTablesOfOtherLibraries has a model see all columns of what is no table of pandas'.
func TestTablesOfOtherLibraries(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	c, server := asking(t, "openai/scripted", []modeltest.Turn{
		modeltest.Run("import polars as pl\nwide = pl.DataFrame({f'column{i:02}': [i, None, 'a' * 99 if i == 3 else i] if i != 3 else ['x', None, 'y'] for i in range(16)})\nwide"),
		modeltest.Run("print(wide)"),
		modeltest.Run("pl.DataFrame({'list': pl.concat([pl.Series([1000]).repeat_by(2_000_000)] * 10), 'struct': [{'a': [1]}] * 10, 'short': [[i] for i in range(10)]})"),
		modeltest.Run("pl.DataFrame()"),
		modeltest.Run("import geopandas as gpd\nfrom shapely.geometry import Point\ngpd.GeoDataFrame({f'field{i}': [i, i] for i in range(5)}, geometry=[Point(1, 2), Point(3, 4)])"),
		modeltest.Say("Done."),
	}, "What is in it?")
	c.setenv("COVE_PACKAGES=standard")
	c.run().ended(t, 0)
	sent := server.Requests()
	last := sent[len(sent)-1].Text()
	for _, want := range []string{"[DataFrame: 3 rows × 16 columns]", "column15", "[dtypes: Int64 ×3, String, Int64 ×12]", "[missing: column00 1", "┆ column07 ┆", "[DataFrame: 10 rows × 3 columns]", "…,[9]", "[DataFrame: 0 rows × 0 columns]", "[DataFrame: 2 rows × 6 columns]",
		"field0,field1,field2,field3,field4,geometry", "POINT (3 4)"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model is not told %q:\n%s", want, last)
		}
	}
}

// TestResultsOfOtherLibraries has a model be told of results that have another form than a table or a page: as text, not as LaTeX, and what a picture is.
func TestResultsOfOtherLibraries(t *testing.T) {
	t.Parallel()
	testneeds.FullTier(t)
	c, server := asking(t, "openai/scripted", []modeltest.Turn{
		modeltest.Run("import numpy as np, statsmodels.api as sm\nsm.OLS(np.arange(9.0), sm.add_constant(np.arange(9.0) ** 2)).fit().summary()"),
		modeltest.Run("from PIL import Image\nImage.new('RGB', (80, 40), 'red')"),
		modeltest.Run("import pandas as pd\nfrom plotnine import ggplot, aes, geom_col, ggtitle\nggplot(pd.DataFrame({'region': ['north', 'south'], 'sales': [12, 30]}), aes('region', 'sales')) + geom_col() + ggtitle('Sales of 2024')"),
		modeltest.Say("Done."),
	}, "What is in it?")
	c.setenv("COVE_PACKAGES=standard")
	c.run().ended(t, 0)
	sent := server.Requests()
	last := sent[len(sent)-1].Text()
	for _, want := range []string{"OLS Regression Results", "80x40", "x: \"region\"", "y: \"sales\"", "Sales of 2024"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model is not told %q:\n%s", want, last)
		}
	}
	if strings.Contains(last, "textbf") {
		t.Errorf("the model is told LaTeX:\n%s", last)
	}
}
