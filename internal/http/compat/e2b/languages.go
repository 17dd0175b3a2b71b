package e2b

import (
	_ "embed" // the programs of workers
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

//go:embed worker.js
var nodeWorker string

//go:embed worker.sh
var bashWorker string

//go:embed worker.r
var rWorker string

//go:embed worker.java
var javaWorker string

const (
	python, javascript, typescript, bash, rlang, java = "python", "javascript", "typescript", "bash", "r", "java"
)

// language is one that contexts have beside Python.
type language struct {
	other   []string // names that clients have for it
	program string   // of the host, without which it is not there: sandboxes see the host's programs
	install string   // what has the program
	args    []string // of the process of a context; the last of all is its mark
	in      string   // the language whose contexts run this one, too; "": it has its own
}

// javaStart puts the program in a file, which it removes: Java reads programs from files alone.
const javaStart = `f=$(mktemp --suffix=.java) && printf %s "$1" >"$f" && exec java -Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "$f" "$f" "$2"`

var languages = map[string]language{
	bash:       {[]string{"sh"}, "bash", "bash", []string{"bash", "--noprofile", "--norc", "-c", bashWorker, "bash"}, ""},
	javascript: {[]string{"js"}, "node", "Node.js (Debian's nodejs)", []string{"node", "--experimental-repl-await", "-e", nodeWorker}, ""},
	typescript: {[]string{"ts"}, "node", "Node.js (Debian's nodejs), and where that is older than 22.13 TypeScript (Debian's node-typescript)", nil, javascript},
	rlang:      {nil, "Rscript", "R (Debian's r-base-core)", []string{"Rscript", "-e", "eval(parse(text = commandArgs(TRUE)[1]))", rWorker}, ""},
	java:       {nil, "jshell", "a JDK 17 or newer (Debian's default-jdk-headless)", []string{"bash", "-c", javaStart, "bash", javaWorker}, ""},
}

// installed are the programs of languages that the host has.
var installed = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, l := range languages {
		_, err := exec.LookPath(l.program)
		out[l.program] = err == nil
	}
	return out
})

// languageOf returns a language that there is, by one of its names.
func languageOf(name string) (string, error) {
	lower := strings.ToLower(strings.TrimSpace(name))
	if lower == "" || lower == python || lower == "py" || lower == "python3" {
		return python, nil
	}
	for own, l := range languages {
		if own != lower && !slices.Contains(l.other, lower) {
			continue
		}
		if !installed()[l.program] {
			return "", &fault{http.StatusNotImplemented, fmt.Sprintf("there is no %s in the sandboxes of this server, which code in %s takes; its operator can install %s on the host", l.program, own, l.install)}
		}
		return own, nil
	}
	return "", &fault{http.StatusBadRequest, fmt.Sprintf("the language %.40q is not there: cove has python, javascript, typescript, bash, r and java; run other programs with commands.run", name)}
}
