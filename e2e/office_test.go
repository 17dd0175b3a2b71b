package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cove/internal/testkit/testneeds"
)

// lackingForOffice are the programs of testdata/office that need more than the system packages of docs/packages.md, with what they are told where that is missing.
var lackingForOffice = map[string]string{
	"050_moviepy_editor":          "Hint: moviepy.editor is gone; what it had is in moviepy itself",
	"070_unrar_program":           `Hint: unrar is not here; have the files packed as zip or 7z: py7zr reads 7z; whoever runs cove brings it with packages.system = ["unrar-free"]`,
	"090_libreoffice_docx_to_pdf": `Hint: LibreOffice is not here; python-docx, python-pptx and openpyxl read and write its files, and weasyprint makes PDFs of HTML; whoever runs cove brings it with packages.system = ["libreoffice-writer-nogui", `,
	"096_plotly_png":              `Hint: a browser, with which Plotly draws pictures, is not here; fig.show() shows the figure, and fig.write_html('figure.html') keeps it`,
	"103_pyzbar":                  `Hint: the library zbar is not here; import zxingcpp; zxingcpp.read_barcodes(image) reads barcodes, and cv2.QRCodeDetector QR codes; whoever runs cove brings it with packages.system = ["libzbar0"]`,
	"104_pdfkit":                  `Hint: wkhtmltopdf is not here; weasyprint.HTML(string=page).write_pdf('file.pdf') makes a PDF of HTML`,
	"110_ghostscript":             `Hint: Ghostscript is not here; pypdf and pikepdf merge, split and compress PDFs, and pypdfium2 draws their pages; whoever runs cove brings it with packages.system = ["ghostscript"]`,
}

// TestOfficePrograms runs the programs of testdata/office, which read and write what people have in offices, each in a session of its own, with the system packages that docs/packages.md has for an
// example. Of each it is known beforehand what it prints: NN_name.txt was not made from what it printed. At least 93 of 100 are right at first go, and the others are told what is missing.
func TestOfficePrograms(t *testing.T) {
	testneeds.FullTier(t)
	testneeds.AskedForParts(t, testneeds.Sandboxes)
	packages, ready := documentedSystemPackages(t), false
	t.Run("packages", func(t *testing.T) {
		if err := testneeds.Download(t, func() error { needSystemPackages(t, packages); return nil }); err != nil {
			t.Fatal(err)
		}
		ready = true
	})
	if !ready {
		return
	}
	programs, err := filepath.Glob(filepath.Join("testdata", "office", "*.py"))
	if err != nil || len(programs) < 100 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	if right := len(programs) - len(lackingForOffice); right*100 < 93*len(programs) {
		t.Errorf("%d of %d are to be right at first go, less than 93 of 100", right, len(programs))
	}
	for _, path := range programs {
		name := strings.TrimSuffix(filepath.Base(path), ".py")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tryOffice(t, path, packages, lackingForOffice[name])
		})
	}
}

// documentedSystemPackages are those that docs/packages.md sets packages.system to.
func documentedSystemPackages(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^system = \[(.*)\]$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/packages.md sets no packages.system")
	}
	return strings.NewReplacer(`"`, "", ",", "").Replace(string(found[1]))
}

// needSystemPackages has the packages installed, for all tests. A machine that cannot have any leaves the test out.
func needSystemPackages(t *testing.T, packages string) {
	t.Helper()
	c := officeCommand(t, packages, "-c", "import shutil; [p for p in ('dot', 'pdftoppm', 'tesseract') if not shutil.which(p)]")
	c.bound = 3 * patience
	r := c.run()
	for _, why := range []string{"packages.system is for Debian", "package sources of this machine", "has no package source"} {
		if r.code != 0 && strings.Contains(r.stderr, why) {
			testneeds.Absent(t, testneeds.Index, "of system packages: "+r.stderr)
		}
	}
	if r.code != 0 || r.stdout != "[]\n" {
		t.Fatalf("with packages.system = %s: %+v", packages, r)
	}
}

func officeCommand(t *testing.T, packages string, args ...string) *command {
	t.Helper()
	c := newCommand(t, append([]string{"run", "--packages", "standard", "-o", "out"}, args...)...)
	c.setenv("COVE_PACKAGES_SYSTEM=" + packages)
	return c
}

// tryOffice runs a program, which prints what is known beforehand, or is told what it lacks.
func tryOffice(t *testing.T, path, packages, lacks string) {
	t.Helper()
	want, err := os.ReadFile(strings.TrimSuffix(path, ".py") + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	r := officeCommand(t, packages, program).run()
	if r.code == 0 && r.stdout == string(want) || lacks != "" && strings.Contains(r.stderr, lacks) {
		return
	}
	t.Errorf("exit code %d, it printed\n%sin place of\n%sand was told\n%s", r.code, r.stdout, want, r.stderr)
}
