package scan

import (
	"path"
	"slices"
	"strings"

	"cove/internal/python/deps/require"
)

// readShell adds what a shell's command lines install.
func readShell(text string, r *Report) {
	for _, words := range commands(text) {
		readCommand(words, r)
	}
}

// commands splits command lines into words, as far as it matters for `pip install`: quotes, backslashes, comments and what separates commands.
// Redirections are dropped; "a>=1" is a word as it was meant, though for a shell it is not.
func commands(text string) [][]string {
	var out [][]string
	var words []string
	var word []byte
	begun := false
	endWord := func() {
		if begun {
			words = append(words, string(word))
		}
		word, begun = word[:0], false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			out = append(out, unredirected(words))
		}
		words = nil
	}
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				word, begun = append(word, text[i]), true
			}
		case quote != 0:
			word = append(word, c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case c == '#' && !begun:
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == '&' && (strings.HasSuffix(string(word), ">") || i+1 < len(text) && text[i+1] == '>'):
			word, begun = append(word, c), true
		case strings.IndexByte(";&|\n()`", c) >= 0:
			endCommand()
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		default:
			word, begun = append(word, c), true
		}
	}
	endCommand()
	return out
}

// unredirected drops redirections: ">file", "> file", "2>&1", "&>file".
func unredirected(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		bare := strings.TrimLeft(words[i], "0123456789&")
		if strings.HasPrefix(bare, ">") || strings.HasPrefix(bare, "<") {
			if strings.Trim(bare, "<>") == "" {
				i++
			}
			continue
		}
		out = append(out, words[i])
	}
	return out
}

// readCommand adds what one command installs. Words that stand for something else ("$package", "{name}") are not known and passed over.
func readCommand(words []string, r *Report) {
	for i, w := range words {
		rest := words[i+1:]
		switch name := path.Base(w); {
		case isPip(name) && (i == 0 || words[i-1] == "-m" || path.Base(words[i-1]) == "uv" || harmless(words[:i])):
			readPip(rest, r)
			return
		case w == "-mpip":
			readPip(rest, r)
			return
		case (name == "conda" || name == "mamba" || name == "micromamba") && harmless(words[:i]):
			readConda(rest, r)
			return
		}
	}
}

func isPip(name string) bool {
	version, ok := strings.CutPrefix(name, "pip")
	return ok && strings.Trim(version, "0123456789.") == ""
}

// harmless says whether words before a command leave it what it is: sudo, time, variables.
func harmless(words []string) bool {
	for _, w := range words {
		if !slices.Contains([]string{"sudo", "env", "time", "exec", "nohup", "nice", "command", "!", "yes", "if", "then", "do"}, w) &&
			!strings.Contains(w, "=") && !strings.HasPrefix(w, "-") {
			return false
		}
	}
	return true
}

// arguments returns what follows the word install when that is the subcommand.
func arguments(words []string) ([]string, bool) {
	for i, w := range words {
		if w == "install" {
			return words[i+1:], true
		}
		if !strings.HasPrefix(w, "-") {
			return nil, false
		}
	}
	return nil, false
}

func unknown(word string) bool { return strings.ContainsAny(word, "{}$`") }

func readPip(words []string, r *Report) {
	words, ok := arguments(words)
	if !ok {
		return
	}
	asked := require.ParsePip(slices.DeleteFunc(slices.Clone(words), unknown))
	for _, q := range asked.Requirements {
		if q.Name != "pip" { // upgrading the installer is a habit; here it is another
			r.asked(q, HowPip)
		}
	}
	for _, refused := range asked.Refused {
		r.refuse(refused)
	}
}

// readConda adds what conda would install, as far as that has the same name on Python's index: "-c channel name=1.2=build".
func readConda(words []string, r *Report) {
	words, ok := arguments(words)
	if !ok {
		return
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case slices.Contains([]string{"-c", "--channel", "-n", "--name", "-p", "--prefix", "--file"}, w):
			i++
			continue
		case strings.HasPrefix(w, "-") || unknown(w):
			continue
		}
		_, name, channel := strings.Cut(w, "::")
		if !channel {
			name = w
		}
		if !strings.ContainsAny(name, "<>!~") && !strings.Contains(name, "==") {
			parts := strings.SplitN(name, "=", 3)
			name = parts[0]
			if len(parts) > 1 {
				name += "==" + strings.TrimSuffix(parts[1], ".*") + ".*"
			}
		}
		if name == "python" || strings.HasPrefix(name, "python=") || name == "pip" {
			continue
		}
		r.ask(name, HowPip)
	}
}
