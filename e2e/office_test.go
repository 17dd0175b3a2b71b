package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cove/internal/testneeds"
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
	packages := documentedSystemPackages(t)
	if err := testneeds.Download(t, func() error { needSystemPackages(t, packages); return nil }); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(filepath.Join("testdata", "office", "*.py"))
	if err != nil || len(programs) < 100 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	var mu sync.Mutex
	var told, wrong []string
	began := time.Now()
	work := make(chan string)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for path := range work {
				name := strings.TrimSuffix(filepath.Base(path), ".py")
				fault, said := tryOffice(t, path, packages)
				mu.Lock()
				switch lacks := lackingForOffice[name]; {
				case fault == "":
				case lacks != "" && strings.Contains(said, lacks):
					told = append(told, name)
				default:
					wrong = append(wrong, name+": "+fault)
				}
				mu.Unlock()
			}
		})
	}
	for _, path := range programs {
		work <- path
	}
	close(work)
	workers.Wait()
	slices.Sort(told)
	slices.Sort(wrong)
	right := len(programs) - len(told) - len(wrong)
	t.Logf("%d of %d right at first go in %.0f s; told what is missing: %s", right, len(programs), time.Since(began).Seconds(), strings.Join(told, ", "))
	for _, w := range wrong {
		t.Error(w)
	}
	if right*100 < 93*len(programs) {
		t.Errorf("%d of %d are right at first go, less than 93 of 100", right, len(programs))
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

// tryOffice runs a program, and says what is wrong with what it printed, and all that it was told.
func tryOffice(t *testing.T, path, packages string) (fault, said string) {
	want, err := os.ReadFile(strings.TrimSuffix(path, ".py") + ".txt")
	if err != nil {
		return err.Error(), ""
	}
	program, err := filepath.Abs(path)
	if err != nil {
		return err.Error(), ""
	}
	r := officeCommand(t, packages, program).run()
	if r.code != 0 || r.stdout != string(want) {
		return "exit code " + strconv.Itoa(r.code) + ", it printed\n" + r.stdout + "in place of\n" + string(want) + "and was told\n" + r.stderr, r.stderr
	}
	return "", r.stderr
}
