package screen

import (
	"regexp"
	"strings"
	"sync"
)

// calls are what full names of functions stand for. A name that ends with a dot stands for all that is below it.
var calls = map[string]string{
	"subprocess.": StartsPrograms, "os.system": StartsPrograms, "os.popen": StartsPrograms, "os.execl": StartsPrograms, "os.execle": StartsPrograms, "os.execlp": StartsPrograms, "os.execv": StartsPrograms,
	"os.execve": StartsPrograms, "os.execvp": StartsPrograms, "os.execvpe": StartsPrograms, "os.posix_spawn": StartsPrograms, "os.spawnl": StartsPrograms, "os.spawnv": StartsPrograms, "os.spawnvp": StartsPrograms,
	"pty.spawn": StartsPrograms, "os.startfile": StartsPrograms, "runpy.run_path": RunsText, "asyncio.create_subprocess_exec": StartsPrograms, "asyncio.create_subprocess_shell": StartsPrograms, "commands.getoutput": StartsPrograms, "popen2.": StartsPrograms,
	"pexpect.": StartsPrograms, "sh.": StartsPrograms, "plumbum.": StartsPrograms,
	"socket.": UsesSockets, "socketserver.": UsesSockets, "asyncio.open_connection": UsesSockets, "asyncio.start_server": UsesSockets, "paramiko.": UsesSockets, "ftplib.": UsesSockets, "telnetlib.": UsesSockets,
	"smtplib.": UsesSockets, "poplib.": UsesSockets, "imaplib.": UsesSockets, "xmlrpc.client.": UsesSockets, "scapy.": UsesSockets,
	"eval": RunsText, "exec": RunsText, "compile": RunsText, "execfile": RunsText, "code.interact": RunsText, "timeit.timeit": "",
	"pickle.load": LoadsObjects, "pickle.loads": LoadsObjects, "pickle.Unpickler": LoadsObjects, "cPickle.load": LoadsObjects, "cPickle.loads": LoadsObjects, "dill.load": LoadsObjects, "dill.loads": LoadsObjects,
	"cloudpickle.load": LoadsObjects, "cloudpickle.loads": LoadsObjects, "joblib.load": LoadsObjects, "marshal.load": LoadsObjects, "marshal.loads": LoadsObjects, "shelve.open": LoadsObjects,
	"jsonpickle.decode": LoadsObjects, "torch.load": LoadsObjects, "pandas.read_pickle": LoadsObjects, "yaml.unsafe_load": LoadsObjects, "yaml.load": LoadsObjects,
	"ctypes.CDLL": LoadsNative, "ctypes.cdll.LoadLibrary": LoadsNative, "ctypes.PyDLL": LoadsNative, "ctypes.WinDLL": LoadsNative, "cffi.FFI": LoadsNative, "ctypes.memmove": LoadsNative,
	"shutil.rmtree": RemovesTrees, "os.removedirs": RemovesTrees, "distutils.dir_util.remove_tree": RemovesTrees,
	"ssl._create_unverified_context": TrustsAnybody, "ssl.CERT_NONE": TrustsAnybody, "paramiko.AutoAddPolicy": TrustsAnybody, "urllib3.disable_warnings": TrustsAnybody,
}

// harmless are functions below a name with a dot that stand for nothing.
var harmless = map[string]bool{
	"subprocess.CalledProcessError": true, "subprocess.TimeoutExpired": true, "subprocess.SubprocessError": true, "subprocess.list2cmdline": true, "socket.gethostname": true, "socket.timeout": true,
	"socket.inet_aton": true, "socket.inet_ntoa": true, "socket.inet_pton": true, "socket.inet_ntop": true, "socket.htons": true, "socket.ntohs": true, "socket.error": true, "smtplib.SMTPException": true,
}

func ruleOf(full string) string {
	if rule, ok := calls[full]; ok {
		return rule
	}
	if dot := strings.IndexByte(full, '.'); dot > 0 && !harmless[full] {
		if rule, ok := calls[full[:dot+1]]; ok {
			return rule
		}
		if second := strings.IndexByte(full[dot+1:], '.'); second > 0 {
			return calls[full[:dot+second+2]]
		}
	}
	return ""
}

// notable says whether another name for a function is worth to be remembered.
func notable(full string) bool { return ruleOf(full) != "" }

// downloads says whether a function gets something from another computer.
func downloads(full string) bool {
	switch full {
	case "urllib.request.urlopen", "urllib.request.urlretrieve", "urllib2.urlopen", "urllib.urlopen", "wget.download", "requests.request", "aiohttp.ClientSession", "http.client.HTTPSConnection",
		"http.client.HTTPConnection", "socket.create_connection", "pycurl.Curl", "urllib3.PoolManager":
		return true
	}
	root, method, _ := strings.Cut(full, ".")
	return (root == "requests" || root == "httpx") && (method == "get" || method == "post" || method == "Session" || method == "Client" || method == "stream")
}

// decodes says whether a function makes something readable of what was not.
func decodes(full string) bool {
	switch full {
	case "base64.b64decode", "base64.urlsafe_b64decode", "base64.standard_b64decode", "base64.b32decode", "base64.b16decode", "base64.b85decode", "base64.a85decode", "base64.decodebytes", "binascii.unhexlify", "binascii.a2b_base64", "binascii.a2b_hex",
		"bytes.fromhex", "bytearray.fromhex", "zlib.decompress", "gzip.decompress", "bz2.decompress", "lzma.decompress", "marshal.loads", "codecs.decode", "cryptography.fernet.Fernet", "Fernet":
		return true
	}
	return strings.HasSuffix(full, ".Fernet")
}

// call looks at a call whose bracket opens at token at.
func (l *look) call(full string, line, at int) {
	stop := l.closing(at)
	rule := ruleOf(full)
	l.downloaded = l.downloaded || downloads(full)
	l.keeps(full, at, stop)
	switch {
	case rule == RunsText && full == "compile" && !l.mentions(at, stop, "exec", "eval", "single"):
		rule = "" // re.compile as a bare name, and the like
	case full == "yaml.load" && l.named(at, stop, "Loader") && !l.named(at, stop, "UnsafeLoader") && !l.named(at, stop, "FullLoader"):
		rule = ""
	case full == "exec" || full == "eval" || full == "compile" || rule == StartsPrograms:
		if origin := l.origin(at+1, stop); origin != "" {
			l.find(origin, line, full)
		}
	}
	if rule == RunsText && (l.charted(at, stop) || l.escaped(at, stop)) || (full == "__import__" || full == "importlib.import_module") && l.pieced(at, stop) ||
		full == "getattr" && (l.is(at+1, name, "__builtins__") || l.is(at+1, name, "builtins")) {
		l.find(RunsHidden, line, full)
	}
	if rule != "" {
		l.find(rule, line, full)
	}
	if rule == StartsPrograms {
		l.argument(at, stop)
		for i := at + 1; i < stop; i++ {
			if t := l.at(i); t.kind == text && l.from[strings.TrimPrefix(t.text, "./")] == RunsDownload {
				l.find(RunsDownload, line, full)
			}
		}
	}
	if full == "shutil.rmtree" {
		if path, whole := l.joined(at+1, stop); whole && stop > at+1 && everything(path) {
			l.find(Destroys, line, full)
		}
	}
	l.shown(full, at, stop)
	if joins(full) {
		l.paths(at+1, stop, line)
	}
	if full == "open" || full == "io.open" {
		l.opens(at, stop, line)
	}
	if full == "os.fork" && l.loops(at) {
		l.find(Floods, line, full)
	}
	if full == "os.dup2" && l.loosely("socket") {
		l.find(OpensShell, line, full)
	}
	if l.turnsOff(at, stop) {
		l.find(TrustsAnybody, line, full)
	}
}

// keeps notes where a program writes what it has downloaded: to run that is to run the download.
func (l *look) keeps(full string, at, stop int) {
	i := at + 1
	switch {
	case full == "urllib.request.urlretrieve" || full == "wget.download" || full == "urllib.urlretrieve":
		for i < stop && !l.is(i, sign, ",") {
			i++
		}
		i++
	case full == "open" && l.downloaded && l.mentions(at, stop, "wb", "wb+", "w+b", "bw"):
	default:
		return
	}
	if t := l.at(i); i < stop && (t.kind == name || t.kind == text) && t.text != "" {
		l.from[t.text] = RunsDownload
	}
}

// mentions says whether one of some strings is among the arguments.
func (l *look) mentions(i, stop int, texts ...string) bool {
	for ; i < stop; i++ {
		if t := l.at(i); t.kind == text {
			for _, s := range texts {
				if t.text == s {
					return true
				}
			}
		}
	}
	return false
}

// named says whether a name is among the arguments, or ends with it.
func (l *look) named(i, stop int, word string) bool {
	for ; i < stop; i++ {
		if t := l.at(i); t.kind == name && strings.HasSuffix(t.text, word) {
			return true
		}
	}
	return false
}

// charted says whether text is put together from the numbers of characters.
func (l *look) charted(i, stop int) bool { return l.named(i, stop, "chr") && l.named(i, stop, "join") }

// escaped says whether a string among the arguments is written in numbers of characters.
func (l *look) escaped(i, stop int) bool {
	const many = 10
	for ; i < stop; i++ {
		if t := l.at(i); t.kind == text && strings.Count(t.text, `\x`)+strings.Count(t.text, `\u00`) >= many {
			return true
		}
	}
	return false
}

// pieced says whether the first argument is put together from strings, or turned around.
func (l *look) pieced(at, stop int) bool {
	literal := false
	for i := at + 1; i < stop; i++ {
		literal = literal || l.at(i).kind == text
		if literal && (l.is(i, sign, "+") || l.is(i, sign, "[")) || l.is(i, name, "chr") {
			return true
		}
		if l.is(i, sign, ",") {
			break
		}
	}
	return false
}

// turnsOff says whether verify=False is among the arguments.
func (l *look) turnsOff(i, stop int) bool {
	for ; i+2 < stop; i++ {
		if l.is(i, name, "verify") && l.is(i+1, sign, "=") && l.is(i+2, name, "False") {
			return true
		}
	}
	return false
}

// loosely says whether a module is imported.
func (l *look) loosely(module string) bool { return l.names[module] != "" }

// loops says whether the lines before are a loop without end.
func (l *look) loops(i int) bool {
	for back := i; back > 0 && back > i-40; back-- {
		if l.is(back, name, "while") && (l.is(back+1, name, "True") || l.is(back+1, sign, "0")) {
			return true
		}
	}
	return false
}

// argument looks at the command that a call starts: a string, or the strings of a list together.
func (l *look) argument(at, stop int) {
	var parts []string
	line := l.at(at).line
	for i := at + 1; i < stop; i++ {
		if t := l.at(i); t.kind == text {
			if len(parts) == 0 {
				line = t.line
			}
			parts = append(parts, t.text)
		} else if t.kind == name && l.is(i+1, sign, "=") {
			break // what follows are options
		}
	}
	l.command(token{shell, strings.Join(parts, " "), line})
}

// mark is a text that stands for a rule wherever it is, in lower case.
type mark struct{ text, rule string }

var marks = []mark{
	{".ssh/id_", ReadsCredentials}, {".aws/credentials", ReadsCredentials}, {".git-credentials", ReadsCredentials}, {"/etc/shadow", ReadsCredentials}, {".kube/config", ReadsCredentials},
	{".docker/config.json", ReadsCredentials}, {".config/gcloud", ReadsCredentials}, {"application_default_credentials", ReadsCredentials}, {".netrc", ReadsCredentials}, {".pypirc", ReadsCredentials}, {".npmrc", ReadsCredentials},
	{".azure/accesstokens", ReadsCredentials}, {"login data", ReadsCredentials}, {"cookies.sqlite", ReadsCredentials}, {"logins.json", ReadsCredentials}, {"wallet.dat", ReadsCredentials}, {"/.electrum/wallets", ReadsCredentials},
	{"/var/run/secrets/kubernetes.io", ReadsCredentials}, {"/proc/self/environ", ReadsCredentials}, {"/proc/1/environ", ReadsCredentials}, {".bash_history", ReadsCredentials}, {"os_crypt", ReadsCredentials}, {"chrome/user data", ReadsCredentials}, {"chrome\\user data", ReadsCredentials}, {"chrome\\\\user data", ReadsCredentials},
	{"discord.com/api/webhooks", SendsAway}, {"discordapp.com/api/webhooks", SendsAway}, {"api.telegram.org/bot", SendsAway}, {"webhook.site", SendsAway}, {".oastify.com", SendsAway}, {"burpcollaborator", SendsAway}, {"interact.sh", SendsAway},
	{".pipedream.net", SendsAway}, {"requestbin", SendsAway}, {".ngrok", SendsAway}, {"pastebin.com/raw", SendsAway}, {"transfer.sh", SendsAway}, {"file.io", SendsAway}, {".oast.", SendsAway}, {"local storage/leveldb", ReadsCredentials},
	{"169.254.169.254", AsksMetadata}, {"metadata.google.internal", AsksMetadata}, {"169.254.170.2", AsksMetadata}, {"100.100.100.200", AsksMetadata}, {"metadata.azure", AsksMetadata}, {"fd00:ec2::254", AsksMetadata},
	{"://2852039166", AsksMetadata}, {"0xa9fea9fe", AsksMetadata}, {"0251.0376.0251.0376", AsksMetadata}, {"::ffff:a9fe:a9fe", AsksMetadata}, {"fd20:ce::254", AsksMetadata}, {"169.254.42.42", AsksMetadata},
	{"xmrig", Mines}, {"stratum+tcp", Mines}, {"stratum+ssl", Mines}, {"minerd", Mines}, {"cpuminer", Mines}, {"cryptonight", Mines}, {"nicehash", Mines}, {"minexmr", Mines}, {"supportxmr", Mines}, {"nanopool.org", Mines}, {"randomx", Mines}, {"ethminer", Mines},
	{"/dev/tcp/", OpensShell}, {"authorized_keys", Persists}, {"/etc/cron", Persists}, {"/etc/ld.so.preload", Persists}, {"/etc/sudoers", Persists}, {"~/.bashrc", Persists}, {"currentversion\\run", Persists}, {".config/autostart", Persists},
	{"/etc/systemd/system", Persists}, {"launchagents", Persists},
	{"docker.sock", ProbesSandbox}, {"containerd.sock", ProbesSandbox}, {"release_agent", ProbesSandbox}, {"/proc/1/root", ProbesSandbox}, {"/proc/sysrq-trigger", ProbesSandbox}, {"/dev/mem", ProbesSandbox}, {"/proc/kcore", ProbesSandbox},
	{"core_pattern", ProbesSandbox}, {"/opt/cove/", ProbesSandbox}, {"nsenter", ProbesSandbox}, {"dirtycow", ProbesSandbox},
}

// string looks at a string of the program.
func (l *look) string(t token) {
	if len(t.text) < 6 {
		return
	}
	low := strings.ToLower(t.text)
	for _, m := range marks {
		if strings.Contains(low, m.text) && !strings.Contains(low, m.text+"/memory") {
			l.find(m.rule, t.line, m.text)
		}
	}
	if strings.Contains(low, "sh") && piped().MatchString(low) {
		l.find(RunsDownload, t.line, t.text)
	}
}

var (
	// piped is a download that goes into a shell or an interpreter.
	piped = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:curl|wget|fetch)\b[^\n;&]*\|\s*(?:sudo\s+)?(?:[a-z]*/)*(?:ba|z|da|k)?sh\b|\b(?:curl|wget)\b[^\n;&]*\|\s*(?:sudo\s+)?(?:[a-z]*/)*(?:python|perl|ruby|node)|(?:ba|z)?sh\s+(?:-c\s+)?["']?(?:<\(|\$\()\s*(?:curl|wget)\b`)
	})
	decoded = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:base64\s+(?:-d|--decode|-D)|xxd\s+-r)\b[^\n;]*\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python|perl)\b`)
	})
	remote = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:nc|ncat|netcat)\b[^\n;|]*\s-[a-z]*[ec]\s|\bsocat\b[^\n;]*\bexec:|mkfifo[^\n]*\|\s*nc\b`)
	})
	removes = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\brm\s+(?:-[a-z-]+\s+)*-[a-z]*r[a-z]*\s+(?:-[a-z-]+\s+)*["']?(?:/|~|\$home|/\*|~/\*|/home/?\*?|/usr|/etc|/var)["']?(?:\s|$|;|&)|\bmkfs\b|\bdd\b[^\n]*\bof=/dev/(?:sd|nvme|vd|xvd|hd)`)
	})
	powerShell = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:powershell|pwsh)\b.*\s-e(?:nc|ncodedcommand|c)?\s+[a-z0-9+/=]{20}`)
	})
	windowsGets = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(?:iex|invoke-expression)\b.*\b(?:downloadstring|iwr|invoke-webrequest|irm)\b|\b(?:downloadstring|iwr|irm|invoke-webrequest)\b.*\|\s*iex\b|\bcertutil\b.*-urlcache|\bbitsadmin\b.*/transfer|\bmshta\s+https?:|\bstart-process\b.*\binvoke-webrequest\b|\binvoke-webrequest\b.*\b(?:start-process|invoke-expression)\b`)
	})
	bomb = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`:\s*\(\)\s*\{\s*:\s*\|\s*:?\s*&?\s*\}?`) })
)

// command looks at a line for a shell.
func (l *look) command(t token) {
	l.string(t)
	low := strings.ToLower(t.text)
	for _, one := range []struct {
		rule string
		is   *regexp.Regexp
	}{{RunsDownload, piped()}, {RunsHidden, decoded()}, {OpensShell, remote()}, {Destroys, removes()}, {Floods, bomb()}, {RunsHidden, powerShell()}, {RunsDownload, windowsGets()}} {
		if one.is.MatchString(low) {
			l.find(one.rule, t.line, t.text)
		}
	}
	l.keepsAndRuns(low, t)
	if strings.Count(low, "crontab ") > strings.Count(low, "crontab -l") {
		l.find(Persists, t.line, t.text)
	}
}

// everything says whether a path is a root or a home folder.
func everything(path string) bool {
	switch strings.TrimRight(path, "/*") {
	case "", "~", "/home", "/usr", "/etc", "/var", "/root":
		return true
	}
	return false
}
