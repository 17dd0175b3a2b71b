package names_test

import (
	"slices"
	"strings"
	"testing"

	"cove/internal/python/deps/names"
)

const python = "3.13"

// Import names of which a different, real project of the very name exists among the 15,000 most downloaded, and what provides them.
const trapsInside = `attr attrs
jwt pyjwt
dotenv python-dotenv
bs4 beautifulsoup4
websocket websocket-client
sklearn scikit-learn
apiclient google-api-python-client
zmq pyzmq
jupyter jupyter-core
slugify python-slugify
socks pysocks
docx python-docx
pdfminer pdfminer-six
telegram python-telegram-bot
gnupg python-gnupg
griffe griffelib
imblearn imbalanced-learn
ansible ansible-core
serial pyserial
Bio biopython
fpdf fpdf2
snappy python-snappy
ulid python-ulid
crontab python-crontab
onelogin python3-saml
environ django-environ
xmlrunner unittest-xml-reporting
rest_framework_simplejwt djangorestframework-simplejwt
public atpublic
discord discord-py
tox_uv tox-uv-bare
suds suds-community
Xlib python-xlib
bumpversion bump2version
kerberos pykerberos
pyVim pyvmomi
flask_bootstrap bootstrap-flask
gitlint gitlint-core
jsonpath jsonpath-python
memcache python-memcached
kafka kafka-python
testinfra pytest-testinfra
hid hidapi
requests_unixsocket requests-unixsocket2`

// The same, where the project of that name is not among those: nearly squatted.
const trapsOutside = `github pygithub
gitlab python-gitlab
usb pyusb
can python-can
umap umap-learn
pywt pywavelets
S3 s3cmd
argon2 argon2-cffi
barcode python-barcode
camelot camelot-py
decouple python-decouple
daemon python-daemon
jenkins python-jenkins
keycloak python-keycloak
readability readability-lxml
socketio python-socketio
tree dm-tree
fluent fluent-logger
robot robotframework
rpds rpds-py
yara yara-python
iso639 python-iso639
pam python-pam
nio matrix-nio
waffle django-waffle
treebeard django-treebeard
boolean boolean-py
notfound sphinx-notfound-page`

// Names on the same lists whose project of that very name does provide them today. py: pytest has a stand-in that steps back for the real one.
// ninja: django-ninja is found by what is imported from it. poetry: only poetry.core comes from elsewhere.
const ownersToday = `py py
ninja ninja
poetry poetry
farama_notifications farama-notifications
ninja.NinjaAPI django-ninja
poetry.core.masonry poetry-core`

// The recommended answers for names that are known to be ambiguous.
const ambiguities = `cv2 opencv-python-headless
hnswlib hnswlib
captcha captcha
captcha.fields django-simple-captcha
beaker.middleware beaker
coinbase.rest coinbase-advanced-py
coinbase.wallet.client coinbase
turbojpeg pyturbojpeg
xdg pyxdg
pandoc pandoc
itk itk
cleantext clean-text
sphinxext.opengraph sphinxext-opengraph
sphinxext.rediraffe sphinxext-rediraffe
PIL.Image pillow
yaml pyyaml
bs4.element beautifulsoup4
sklearn.linear_model scikit-learn
skimage scikit-image
dateutil.parser python-dateutil
dotenv python-dotenv
Crypto.Cipher.AES pycryptodome
Cryptodome pycryptodomex
fitz pymupdf
pymupdf pymupdf
docx python-docx
pptx python-pptx
serial pyserial
usb pyusb
jwt pyjwt
github pygithub
magic python-magic
slugify python-slugify
psycopg2.extras psycopg2-binary
MySQLdb mysqlclient
mysql.connector mysql-connector-python
google.protobuf.message protobuf
google.auth.transport google-auth
google.oauth2.service_account google-auth
google.genai.types google-genai
google.generativeai google-generativeai
google.cloud.storage google-cloud-storage
google.cloud.storage.blob google-cloud-storage
google.cloud.bigquery_storage_v1 google-cloud-bigquery-storage
google.cloud.secretmanager google-cloud-secret-manager
google.cloud.secretmanager_v1 google-cloud-secret-manager
google.cloud.speech_v1p1beta1 google-cloud-speech
azure.storage.blob azure-storage-blob
azure.storage.blob.aio azure-storage-blob
azure.storage.filedatalake azure-storage-file-datalake
azure.mgmt.compute.models azure-mgmt-compute
azure.identity.aio azure-identity
azure.core azure-core
opentelemetry.trace opentelemetry-api
opentelemetry.sdk.trace.export opentelemetry-sdk
opentelemetry.instrumentation.requests opentelemetry-instrumentation-requests
opentelemetry.exporter.otlp.proto.grpc.trace_exporter opentelemetry-exporter-otlp-proto-grpc
ruamel.yaml ruamel-yaml
zope.interface zope-interface
sphinxcontrib.bibtex sphinxcontrib-bibtex
backports.zoneinfo backports-zoneinfo
jaraco.text jaraco-text
airflow.providers.google.cloud.operators apache-airflow-providers-google
airflow.providers.cncf.kubernetes apache-airflow-providers-cncf-kubernetes
airflow.models apache-airflow
databricks.sdk databricks-sdk
databricks.sql databricks-sql-connector
snowflake.connector snowflake-connector-python
snowflake.snowpark.functions snowflake-snowpark-python
torch.nn torch
torchvision torchvision
torchaudio torchaudio
tensorflow.keras tensorflow-cpu
faiss faiss-cpu
xgboost xgboost-cpu
distutils.core setuptools
cgi legacy-cgi
audioop audioop-lts
imghdr standard-imghdr
sndhdr standard-sndhdr
chunk standard-chunk
aifc standard-aifc
sunau standard-sunau
telnetlib standard-telnetlib
pipes standard-pipes
asyncore pyasyncore
asynchat pyasynchat
mpl_toolkits.mplot3d matplotlib
pkg_resources setuptools
pylab matplotlib
ffmpeg ffmpeg-python
community python-louvain
Levenshtein levenshtein
talib ta-lib
barcode python-barcode
haystack haystack-ai
whisper openai-whisper
bpy bpy`

func TestNamesResolveToTheirProjects(t *testing.T) {
	t.Parallel()
	for _, list := range []string{trapsInside, trapsOutside, ownersToday, ambiguities} {
		for line := range strings.Lines(list) {
			module, want, _ := strings.Cut(strings.TrimSpace(line), " ")
			got := names.Resolve(module, python)
			if got.Status != names.Found || got.Distribution != want {
				t.Errorf("%s is %s %q, want %q", module, got.Status, got.Distribution, want)
				continue
			}
			if len(got.Candidates) == 0 || got.Candidates[0].Distribution != want || got.Explanation == "" || got.Module != module || got.Key == "" {
				t.Errorf("%s: the answer does not explain itself: %+v", module, got)
			}
		}
	}
}

func TestTrapsAreNotTheProjectOfThatName(t *testing.T) {
	t.Parallel()
	for _, list := range []string{trapsInside, trapsOutside} {
		for line := range strings.Lines(list) {
			module, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if got := names.Resolve(module, python); got.Distribution == strings.ToLower(strings.ReplaceAll(module, "_", "-")) {
				t.Errorf("%s resolves to the project of that very name", module)
			}
		}
	}
}

func TestNamesThatAreNeverInstalled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ modules, hint string }{
		{"urllib2 urlparse StringIO cStringIO Queue httplib cPickle Tkinter ConfigParser __builtin__ md5 xmlrpclib tkMessageBox sets", "Python 2"},
		{"maya sublime idaapi idc lldb arcpy gimpfu c4d hexchat weechat ROOT hou pcbnew xbmc", "inside of that program"},
		{"machine microbit RPi RPi.GPIO board", "device"},
		{"win32api win32com.client pythoncom", "Windows only"},
		{"winreg msvcrt winsound", "Windows only"},
		{"AppKit Foundation objc Quartz", "macOS"},
		{"google.colab google.colab.drive", "program"},
		{"os2emxpath FrameWork CDIO", "Python 2"},
	} {
		for module := range strings.FieldsSeq(c.modules) {
			got := names.Resolve(module, python)
			if got.Status != names.Refused || got.Reason != names.ByNever || got.Distribution != "" || !strings.Contains(got.Hint, c.hint) {
				t.Errorf("%s is %s %q with the hint %q, want a refusal that speaks of %q", module, got.Status, got.Distribution, got.Hint, c.hint)
			}
		}
	}
}

func TestNamesOfNobody(t *testing.T) {
	t.Parallel()
	for module, hint := range map[string]string{
		"google": "full name", "google.cloud": "full name", "azure": "full name", "azure.mgmt": "full name", "zope": "full name", "sphinxcontrib": "full name",
		"backports": "full name", "imp": "importlib", "utils": "file of your own", "_private_thing": "another package", "naïve": "spelling", "trailing_": "spelling", "mcp_server": "which one",
	} {
		got := names.Resolve(module, python)
		if got.Status != names.Unknown || got.Distribution != "" || !strings.Contains(got.Hint, hint) {
			t.Errorf("%s is %s %q with the hint %q, want unknown with a hint of %q", module, got.Status, got.Distribution, got.Hint, hint)
		}
	}
	if got := names.Resolve("mcp_server", python); len(got.Candidates) < 2 {
		t.Errorf("mcp_server is provided by several, but only %v are named", got.Candidates)
	}
}

func TestAGuessSaysThatItIsOne(t *testing.T) {
	t.Parallel()
	got := names.Resolve("qwzzyx_unheard_of", python)
	if got.Status != names.Found || got.Reason != names.BySameName || got.Distribution != "qwzzyx-unheard-of" || got.Candidates[0].Rank != 0 {
		t.Errorf("a name that nobody knows: %+v", got)
	}
	got = names.Resolve("panda", python)
	if got.Reason == names.BySameName && !strings.Contains(strings.Join(got.Suggestions, " "), "pandas") {
		t.Errorf("panda suggests only %v", got.Suggestions)
	}
}

func TestTheStandardLibraryDependsOnTheVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		root, version string
		want          bool
	}{
		{"os", "3.10", true}, {"json", "3.14", true}, {"_thread", "3.12", true}, {"__future__", "3.11", true}, {"__main__", "3.11", true},
		{"distutils", "3.11", true}, {"distutils", "3.12", false}, {"imp", "3.11", true}, {"imp", "3.12", false},
		{"asyncore", "3.11", true}, {"asyncore", "3.12", false}, {"cgi", "3.12", true}, {"cgi", "3.13", false}, {"telnetlib", "3.12.4", true},
		{"tomllib", "3.10", false}, {"tomllib", "3.11", true}, {"compression", "3.13", false}, {"compression", "3.14", true},
		{"annotationlib", "3.14.0rc1", true}, {"numpy", "3.12", false}, {"urllib2", "3.12", false}, {"", "3.12", false},
		{"json", "", true}, {"json", "nonsense", true}, {"json", "3.99", true}, {"distutils", "3.8", true}, {"winreg", "3.12", true},
	} {
		if got := names.IsStandard(c.root, c.version); got != c.want {
			t.Errorf("%q in the standard library of Python %s: %v", c.root, c.version, got)
		}
	}
	if got := names.Resolve("os.path", "3.11"); got.Status != names.Standard || got.Reason != names.ByStdlib {
		t.Errorf("os.path is %+v", got)
	}
	for version, want := range map[string]names.Status{"3.11": names.Standard, "3.12": names.Found} {
		if got := names.Resolve("asyncore", version); got.Status != want {
			t.Errorf("asyncore for Python %s is %s", version, got.Status)
		}
	}
	if got := names.Resolve("annotationlib", "3.12"); got.Status != names.Refused || !strings.Contains(got.Hint, "3.14") {
		t.Errorf("annotationlib before its time is %+v", got)
	}
}

func TestExtras(t *testing.T) {
	t.Parallel()
	got := names.Resolve("psycopg.rows", python)
	if got.Distribution != "psycopg" || len(got.Extras) != 1 || got.Extras[0] != "binary" {
		t.Errorf("psycopg is %+v", got)
	}
	if got := names.Resolve("markitdown", python); got.Distribution != "markitdown" || !slices.Contains(got.Extras, "docx") || !slices.Contains(got.Extras, "pdf") {
		t.Errorf("markitdown is %+v", got)
	}
}

func TestVersionsThatHaveTheModule(t *testing.T) {
	t.Parallel()
	if got := names.Resolve("pkg_resources", python); got.Distribution != "setuptools" || got.Specifier != "<82" {
		t.Errorf("pkg_resources is %+v", got)
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	if r := names.Rank("Boto3"); r < 1 || r > 20 {
		t.Errorf("boto3 has rank %d", r)
	}
	if names.Rank("typing_extensions") != names.Rank("typing-extensions") || names.Rank("typing.extensions") == 0 {
		t.Error("the spelling of a name changes its rank")
	}
	for _, unknown := range []string{"", "-", "no-such-project-at-all", "typingextensions", "boto3\t1"} {
		if r := names.Rank(unknown); r != 0 {
			t.Errorf("%q has rank %d", unknown, r)
		}
	}
}

func TestSlipsOfPopularNames(t *testing.T) {
	t.Parallel()
	for slip, want := range map[string]string{
		"requsts": "requests", "reqeusts": "requests", "requestss": "requests", "rrequests": "requests", "erquests": "requests", "equests": "requests", "numpyy": "numpy",
		"nupmy": "numpy", "scikitlearn": "scikit-learn", "scikit_Laern": "scikit-learn", "typingextensions": "typing-extensions", "dateutil-python": "python-dateutil",
		"beautifulsoup5": "beautifulsoup4", "panads": "pandas", "crytpography": "cryptography", "matplotllib": "matplotlib", "tensorfow": "tensorflow",
	} {
		if got, ok := names.TypoOf(slip); !ok || got != want {
			t.Errorf("%s is a slip of %q, want %q", slip, got, want)
		}
	}
	for _, fine := range []string{"", "a", "requests", "numpy", "python-docx", "my-own-company-tool", "cowsay", "zzzzzzzz", "torch", "attr", strings.Repeat("x", 10000), "é"} {
		if got, ok := names.TypoOf(fine); ok {
			t.Errorf("%.30q is taken for a slip of %q", fine, got)
		}
	}
}

func TestInterchangeable(t *testing.T) {
	t.Parallel()
	got := names.Interchangeable("OpenCV_Python")
	if len(got) != 4 || got[0] != "opencv-python-headless" {
		t.Errorf("opencv-python may be replaced by %v", got)
	}
	got[0] = "changed"
	if again := names.Interchangeable("opencv-python"); again[0] != "opencv-python-headless" {
		t.Error("what a caller does with the answer changes the next one")
	}
	if got := names.Interchangeable("requests"); got != nil {
		t.Errorf("requests may be replaced by %v", got)
	}
}

func TestOddInput(t *testing.T) {
	t.Parallel()
	odd := []string{
		"", ".", "..", "a.", ".a", "a..b", " ", "os ", "a b", "1a", "a-b", "a/b", "../../etc/passwd", "a\x00b", "a\tb", "a\nb", "\xff\xfe", "naïve", "数据", "数据.分析", "=", "?", "#",
		strings.Repeat("a", 10000), strings.Repeat("a.", 5000) + "a", strings.Repeat(".", 10000), "google." + strings.Repeat("x.", 50) + "y", "google.cloud._v1", "google.cloud._v", "google.cloud.x_v1",
	}
	for _, module := range odd {
		for _, version := range []string{"3.12", "", "3.", "2.7", "-1", "3.99999999999999999999"} {
			got := names.Resolve(module, version)
			if got.Module != module || got.Explanation == "" {
				t.Errorf("%.30q for %q: %+v", module, version, got)
			}
			if strings.ContainsAny(got.Distribution, " /\\\x00\t\n.") {
				t.Errorf("%.30q leads to a distribution %q", module, got.Distribution)
			}
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"numpy", "google.cloud.storage", "", "..", "cv2", "urllib2", "é", "a_v1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, module string) {
		if got := names.Resolve(module, python); got.Module != module || got.Status == names.Found && got.Distribution == "" {
			t.Errorf("%q: %+v", module, got)
		}
		names.TypoOf(module)
		names.Rank(module)
	})
}

func BenchmarkResolve(b *testing.B) {
	var known, unknown []string
	for _, list := range []string{trapsInside, trapsOutside, ambiguities} {
		for line := range strings.Lines(list) {
			module, _, _ := strings.Cut(line, " ")
			known, unknown = append(known, module), append(unknown, strings.Split(module, ".")[0]+"_nobody_has")
		}
	}
	for _, part := range []struct {
		name    string
		modules []string
	}{{"known", known}, {"unknown", unknown}} {
		b.Run(part.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				names.Resolve(part.modules[i%len(part.modules)], python)
				i++
			}
		})
	}
}

// TestImprobableNames wants none of the known projects to look like data, and data to.
func TestImprobableNames(t *testing.T) {
	t.Parallel()
	for _, fields := range written(t, "projects.txt") {
		if name := fields[len(fields)-1]; names.Improbable(fields[0]) || len(fields) > 2 && names.Improbable(name) {
			t.Errorf("%s is a project", name)
		}
	}
	for _, name := range []string{"d41d8cd98f00b204e9800998ecf8427e", "x-4111111111111111", "a1b2c3d4e5", strings.Repeat("long-", 20), "k3yfr0m4n0th3rpl4c3"} {
		if !names.Improbable(name) {
			t.Errorf("%s looks like a project", name)
		}
	}
}
