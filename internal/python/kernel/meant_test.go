package kernel_test

import (
	"strings"
	"testing"

	"cove/internal/python/kernel"
)

// TestMeant has errors say what their code may have meant, and none that has no such cause.
func TestMeant(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	run(t, k, `import pandas as pd
revenue = 3
frame = pd.DataFrame({"region": ["a"], "revenue": [1.0], "order date": [2]})
prices = {"apple": 1, "pear": 2}
class Box:
    def __init__(self): self.height = 1
    def __getitem__(self, key): raise KeyError(key)
class Odd(KeyError):
    def __str__(self): raise ValueError
def nested(d): return d["bannana"]
`)
	const missing = "the sandbox has no network, and "
	const system = "; whoever runs cove brings it with packages.system = "
	const ghostscript = "Ghostscript is not here; pypdf and pikepdf merge, split and compress PDFs, and pypdfium2 draws their pages" + system + "[\"ghostscript\"]"
	const columns = "The columns are: 'region', 'revenue', 'order date'"
	for _, c := range []struct{ code, last, hint string }{
		{"revnue", "NameError: name 'revnue' is not defined. Did you mean: 'revenue'?", ""},
		{"def f():\n    amount = 1\n    return amuont\nf()", "Did you mean: 'amount'?", ""},
		{"pritn(1)", "Did you mean: 'print'?", ""},
		{"zzz", "NameError: name 'zzz' is not defined", ""},
		{"np.zeros(3)", "NameError", "np is not imported: import numpy as np"},
		{"json.dumps(1)", "NameError", "json is not imported: import json"},
		{"Box().heigth", "Did you mean: 'height'?", ""},
		{"frame.revnue", "Did you mean: 'revenue'?", ""},
		{"from os import pth", "Did you mean: 'path'?", ""},
		{"frame['revnue']", "KeyError: 'revnue'", "Did you mean 'revenue'? " + columns},
		{"frame[['region', 'revnue']]", "KeyError", "Did you mean 'revenue'? " + columns},
		{"frame.groupby('reginn').sum()", "KeyError", "Did you mean 'region'? " + columns},
		{"frame.sort_values('Revenue')", "KeyError", "Did you mean 'revenue'? " + columns},
		{"frame.drop(columns=['order_date'])", "KeyError", "Did you mean 'order date'? " + columns},
		{"frame.set_index('profit')", "KeyError", columns},
		{"frame.merge(frame, on='regions')", "KeyError", "Did you mean 'region'? " + columns},
		{"import seaborn as sns\nsns.barplot(frame, x='region', y='revnue')", "ValueError", "Did you mean 'revenue'? " + columns},
		{"prices['aple']", "KeyError: 'aple'", "Did you mean 'apple'? The keys are: 'apple', 'pear'"},
		{"nested(prices)", "KeyError", "The keys are: 'apple', 'pear'"},
		{"Box()['x']", "KeyError: 'x'", ""},
		{"raise KeyError('x')", "KeyError: 'x'", ""},
		{"raise KeyError()", "KeyError", ""},
		{"raise Odd('x')", "Odd", ""},
		{"int('x')", "ValueError", ""},
		{"pd.to_datetime('x')", "", ""},
		{"frame['region'].astype(float)", "ValueError", ""},
		{"{}['x']", "KeyError", ""},
		{"raise ImportError('libGL.so.1: cannot open shared object file: No such file or directory')", "libGL.so.1", "libGL.so.1 is a library of the system, which the sandbox has from the machine that it runs on" + system + "[\"libgl1\"]"},
		{"import ctypes\nctypes.CDLL('libnowhere-2.so.7')", "libnowhere-2.so.7", "libnowhere-2.so.7 is a library of the system, which the sandbox has from the machine that it runs on; install it there"},
		{"raise ImportError('libcuda.so.1: cannot open shared object file: No such file or directory')", "libcuda", "libcuda.so.1 belongs to NVIDIA's drivers, and the sandbox has no GPU: use the package's build for CPUs"},
		{"open('no such file')", "FileNotFoundError", ""},
		{`open('C:\\Users\\Ann\\sales.csv')`, "FileNotFoundError", "code runs in a sandbox, which does not see the folders of your machine: put the file into the working directory (cove run -f FILE, or an upload) and open it as 'sales.csv'"},
		{"open('here.csv', 'w').close()\npd.read_csv('/Users/ann/Desktop/here.csv')", "FileNotFoundError", "the file is in the working directory: open it as 'here.csv'"},
		{"with pd.ExcelWriter('s.xlsx') as w:\n    frame.to_excel(w, sheet_name='Detail')\npd.read_excel('s.xlsx', sheet_name='Detial')", "Detial", "Did you mean 'Detail'? The sheets are: 'Detail'"},
		{"import io\npd.read_csv(io.StringIO('a,b\\n1,2\\n1,2,3,4\\n'))", "ParserError", "line 3 has 4 fields, and the first ones 2: look at the first lines of the file. skiprows= leaves out what stands above the table, sep= names another separator, on_bad_lines='skip' leaves such lines out"},
		{"import subprocess\nsubprocess.run(['wkhtmltopdf', 'a', 'b'])", "wkhtmltopdf", "wkhtmltopdf is not here; weasyprint.HTML(string=page).write_pdf('file.pdf') makes a PDF of HTML" + system + "[\"wkhtmltopdf\"]"},
		{"class ExecutableNotFound(RuntimeError): pass\nraise ExecutableNotFound(\"failed to execute PosixPath('dot'), make sure the Graphviz executables are on your systems' PATH\")", "ExecutableNotFound", "dot, Graphviz's program is not here; networkx with matplotlib draws graphs, and sklearn.tree.plot_tree trees" + system + "[\"graphviz\"]"},
		{"raise ImportError('Unable to find zbar shared library')", "zbar", "the library zbar is not here; import zxingcpp; zxingcpp.read_barcodes(image) reads barcodes, and cv2.QRCodeDetector QR codes" + system + "[\"libzbar0\"]"},
		{"import subprocess\nsubprocess.run(['/usr/bin/gs', '-v'])", "gs", ghostscript},
		{"import subprocess\nsubprocess.run('cd /tmp && PAPER=a4 gs -v', shell=True, check=True)", "127", ghostscript},
		{"import subprocess\nsubprocess.run('exit 127', shell=True, check=True)", "127", ""},
		{"import subprocess\nsubprocess.run('gs || exit 3', shell=True, check=True)", "exit status 3", ""},
		{"raise RuntimeError('Failed to process string with tex because latex could not be found')", "latex", "LaTeX is not here; matplotlib draws formulas by itself, without text.usetex, and weasyprint makes PDFs of the HTML that pandoc writes" + system +
			"[\"texlive-latex-extra\", \"texlive-fonts-recommended\", \"lmodern\", \"cm-super\", \"dvipng\"]"},
		{"raise NotImplementedError('docx2pdf is not implemented for linux as it requires Microsoft Word to be installed')", "docx2pdf", "Microsoft Word is not here; where LibreOffice is, subprocess.run(['soffice', '--headless', '--convert-to', 'pdf', 'file.docx']) makes a PDF" + system + "[\"libreoffice-writer-nogui\"]"},
		{"raise FileNotFoundError('\"exiftool\" is not found, on path or as absolute path')", "exiftool", "exiftool is not here; PIL.Image.open('a.jpg').getexif() reads EXIF, and image.save('b.jpg', exif=exif) writes it" + system + "[\"libimage-exiftool-perl\"]"},
		{"raise ImportError('MagickWand shared library not found.\\nYou probably had not installed ImageMagick library.')", "Magick", "ImageMagick is not here; Pillow and OpenCV change and convert pictures" + system + "[\"imagemagick\"]"},
		{"raise RuntimeError('cannot import desired renderPM backend rlPyCairo')", "renderPM", "a backend of renderPM is not here; renderPDF.drawToFile(drawing, 'a.pdf') and pypdfium2.PdfDocument('a.pdf')[0].render(scale=2).to_pil() make a picture of the drawing"},
		{"raise RuntimeError()", "RuntimeError", ""},
		{"open('tesseract.csv')", "FileNotFoundError", ""},
		{"raise LookupError(\"Resource punkt_tab not found.\\n  >>> nltk.download('punkt_tab')\")", "nltk.download", missing + "nltk's data punkt_tab is not here; whoever runs cove brings it with: cove data add nltk:punkt_tab"},
		{"raise OSError(\"[E050] Can't find model 'en_core_web_sm'.\")", "E050", missing + "spacy's data en_core_web_sm is not here; whoever runs cove brings it with: cove data add spacy:en_core_web_sm==3.8.0"},
		{"import urllib.error, seaborn as sns\ndef offline(*a): raise urllib.error.URLError('no network')\nsns.utils.urlopen = offline\nsns.load_dataset('tips')", "URLError", missing + "seaborn's data tips is not here; whoever runs cove brings it with: cove data add seaborn:tips"},
		{"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')", "URLError", ""},
	} {
		failure := (*kernel.Error)(nil)
		for ev, err := range k.Execute(t.Context(), kernel.Request{Code: c.code}) {
			if err != nil {
				t.Fatalf("%s: %v", c.code, err)
			}
			if e, ok := ev.(kernel.Error); ok {
				failure = &e
			}
		}
		if failure == nil {
			t.Errorf("%s raised nothing", c.code)
			continue
		}
		last := failure.Traceback[len(failure.Traceback)-1]
		if !strings.Contains(last, c.last) || c.last != "" && strings.Contains(c.last, "zzz") && last != c.last || failure.Hint != c.hint {
			t.Errorf("%s ends in %q with the hint %q, not %q with %q", c.code, last, failure.Hint, c.last, c.hint)
		}
	}
}
