// Package screen looks at Python before it runs and says what in it calls for a second look: code that comes out of a download or is hidden, paths of credentials, miners, shells for
// others, and, less urgent, programs, sockets and pickles. It reads the text alone and in about the time that it takes to copy it.
//
// It is advice, not a wall: who wants to get past it can, and what holds code is the sandbox. It is for mistakes of models, for code that came out of data that a model has read, and for
// people who want to know. The rules are ours; what they look for is what Bandit (its lists of calls), the write-ups of malicious packages on PyPI and MITRE's ATT&CK (T1059, T1105, T1140,
// T1496, T1552, T1611) name.
package screen

import (
	"slices"
	"strings"
)

// Finding is one place in a program.
type Finding struct {
	Rule string `json:"rule"` // its name, as in Rules
	Line int    `json:"line"` // from 1
	What string `json:"what"` // what stands there, such as a call's name; at most longestWhat bytes
}

// Rule is what is looked for.
type Rule struct {
	Name    string
	Serious bool   // hardly ever in honest code for data questions
	About   string // a sentence for people and models
}

// The names of rules.
const (
	RunsDownload     = "runs-download"
	RunsHidden       = "runs-hidden-code"
	ReadsCredentials = "reads-credentials"
	AsksMetadata     = "asks-metadata"
	Mines            = "mines"
	OpensShell       = "opens-shell"
	Floods           = "floods"
	Destroys         = "destroys"
	Persists         = "persists"
	ProbesSandbox    = "probes-sandbox"
	StartsPrograms   = "starts-programs"
	UsesSockets      = "uses-sockets"
	RunsText         = "runs-text"
	LoadsObjects     = "loads-objects"
	LoadsNative      = "loads-native-code"
	SendsAway        = "sends-away"
	RemovesTrees     = "removes-trees"
	TrustsAnybody    = "trusts-anybody"
)

// Rules are all rules, the serious ones first.
func Rules() []Rule {
	return []Rule{
		{RunsDownload, true, "It runs code that it downloads."},
		{RunsHidden, true, "It runs code that is encoded or hidden in it."},
		{ReadsCredentials, true, "It names files in which credentials are kept."},
		{AsksMetadata, true, "It asks a cloud's metadata service, which gives out credentials."},
		{Mines, true, "It mines a cryptocurrency, or names a program or a pool for that."},
		{OpensShell, true, "It gives a shell to another computer."},
		{Floods, true, "It starts processes without end."},
		{Destroys, true, "It removes everything from a root or a home folder on, or overwrites a disk."},
		{Persists, true, "It arranges to be started again, or lets somebody sign in."},
		{ProbesSandbox, true, "It tries what sandboxes and containers are broken out of with."},
		{StartsPrograms, false, "It starts other programs."},
		{UsesSockets, false, "It opens connections or listens, without a library for HTTP."},
		{RunsText, false, "It runs text as code."},
		{LoadsObjects, false, "It loads objects from bytes in a form that can run code, such as pickle."},
		{LoadsNative, false, "It loads libraries of machine code by name."},
		{SendsAway, false, "It names a service at which anybody can receive data without a name."},
		{RemovesTrees, false, "It removes folders with all that is in them."},
		{TrustsAnybody, false, "It does not check who is at the other end of a connection."},
	}
}

var serious = func() map[string]bool {
	out := map[string]bool{}
	for _, r := range Rules() {
		out[r.Name] = r.Serious
	}
	return out
}()

// Serious says whether a rule is about what is hardly ever in honest code for data questions. It is false for a name that is no rule's.
func Serious(rule string) bool { return serious[rule] }

// Known says whether there is a rule of that name.
func Known(rule string) bool {
	_, known := serious[rule]
	return known
}

// Bounds of what is looked at and said.
const (
	longestCode = 1 << 20 // bytes
	mostFound   = 50
	longestWhat = 100
)

// Look returns what it finds in Python code, cells with magics too, in the order of the lines; each rule once a line. Of longer code than a mebibyte it sees the beginning.
func Look(code string) []Finding {
	if len(code) > longestCode {
		code = code[:longestCode]
	}
	l := &look{names: map[string]string{}, from: map[string]string{}, quiet: map[int]bool{}}
	l.tokens = read(code)
	l.walk()
	if i := strings.IndexFunc(code, turnsText); i >= 0 {
		l.find(RunsHidden, 1+strings.Count(code[:i], "\n"), "characters that show text in another order")
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int { return a.Line - b.Line })
	return l.found
}

// turnsText says whether a character changes the order in which text is shown, so that code is not what it looks like (CVE-2021-42574).
func turnsText(c rune) bool { return c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 }

// Describe says in one line what was found: the rules' sentences with their lines.
func Describe(found []Finding) string {
	var parts []string
	for _, r := range Rules() {
		var lines []string
		for _, f := range found {
			if f.Rule == r.Name {
				lines = append(lines, number(f.Line))
			}
		}
		if len(lines) > 0 {
			word := "line "
			if len(lines) > 1 {
				word = "lines "
			}
			parts = append(parts, strings.TrimSuffix(r.About, ".")+" ("+word+strings.Join(lines[:min(len(lines), 5)], ", ")+")")
		}
	}
	return strings.Join(parts, ". ")
}

func (l *look) find(rule string, line int, what string) {
	if len(l.found) >= mostFound || slices.ContainsFunc(l.found, func(f Finding) bool { return f.Rule == rule && f.Line == line }) {
		return
	}
	what = strings.ToValidUTF8(strings.Join(strings.Fields(what), " "), "")
	if len(what) > longestWhat {
		what = strings.ToValidUTF8(what[:longestWhat-3], "") + "..."
	}
	l.found = append(l.found, Finding{rule, line, what})
}
