package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"cove/internal/sessions/ondisk"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

// Help is the long help.
func (completionCmd) Help() string {
	return `The script asks cove itself for what may come next, so that it need not be made again when cove is upgraded.

For good:

    cove completion bash > ~/.local/share/bash-completion/completions/cove
    cove completion zsh > "${fpath[1]}/_cove"
    cove completion fish > ~/.config/fish/completions/cove.fish
    cove completion powershell >> $PROFILE

For this shell only:

    source <(cove completion bash)`
}

func (c *completionCmd) run(_ context.Context, p *Program) (int, error) {
	_, err := io.WriteString(p.Out, completionScripts()[c.Shell])
	return 0, err
}

// completionScripts have each shell ask `cove __complete WORD...` (the words before the one that is written, and that one) for lines of a word, a tab and what it means. Without any, the shell completes names of files.
func completionScripts() map[string]string {
	return map[string]string{
		"bash": `# bash completion of cove
_cove() {
  local IFS=$'\n' line
  COMPREPLY=()
  for line in $(cove __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
    COMPREPLY+=("${line%%$'\t'*}")
  done
}
complete -o default -o nosort -F _cove cove
`,
		"zsh": `#compdef cove
_cove() {
  local -a found
  local line
  for line in ${(f)"$(cove __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( ${#found} )); then
    _describe cove found
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_cove" ]; then
  _cove "$@"
else
  compdef _cove cove
fi
`,
		"fish": `# fish completion of cove
function __cove_complete
  set -l words (commandline -opc)
  cove __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c cove -n 'test -n "$(__cove_complete)"' -f -a '(__cove_complete)'
`,
		"powershell": `# PowerShell completion of cove
Register-ArgumentCompleter -Native -CommandName cove -ScriptBlock {
  param($word, $ast, $cursor)
  $words = @($ast.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursor -or $_.Extent.Text -ne $word } | ForEach-Object { $_.Extent.Text })
  cove __complete @words "$word" 2>$null | ForEach-Object {
    $name, $about = $_ -split "` + "`t" + `", 2
    [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $(if ($about) { $about } else { $name }))
  }
}
`,
	}
}

// completeWord is the command that the scripts of completionCmd give. It is no command of the grammar: it takes any words.
const completeWord = "__complete"

// complete prints what may come. What goes wrong is for nobody to read: the shell completes names of files then.
func (p *Program) complete(words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	model, err := wholeModel(p)
	if err != nil {
		return exitFailure
	}
	names := p.namesOf
	if p.Config.Remote.Server != "" {
		names = func(string, string) []completion { return nil }
	}
	speak(model.Node, defaults(p.Config))
	for _, f := range completions(model.Node, words[:len(words)-1], words[len(words)-1], names) {
		if _, err := fmt.Fprintf(p.Out, "%s\t%s\n", f.word, f.about); err != nil {
			return exitBrokenPipe
		}
	}
	return 0
}

// wholeModel is the grammar of all commands.
func wholeModel(p *Program) (*kong.Application, error) {
	var g grammar
	parser, err := g.parser("", grammarOptions(p)...)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	return parser.Model, nil
}

// completion is a word that may come, and what it means.
type completion struct{ word, about string }

// sessionNames are the sessions of this machine: a listing of their folder, which asks no server and reads no record. Those of conversations, of which nobody knows the names by
// heart, are there for a word that begins like one.
func (p *Program) sessionNames(word string) (names []string) {
	entries, _ := os.ReadDir(p.store(p.Config).Dir)
	for _, e := range entries {
		if ondisk.CheckName(e.Name()) == nil && (strings.HasPrefix(word, "ses_") || !strings.HasPrefix(e.Name(), "ses_")) {
			names = append(names, e.Name())
		}
	}
	return names
}

// namesOf are the names of things of a kind that may come for a word.
func (p *Program) namesOf(kind, word string) (names []completion) {
	switch kind {
	case "session":
		for _, name := range p.sessionNames(word) {
			names = append(names, completion{name, ""})
		}
	case "conversation":
		names = p.conversationNames(word)
	}
	return names
}

// offeredConversations is how many conversations are offered.
const offeredConversations = 20

// conversationNames are the numbers of the conversations that were used last, with their titles, and their ids for a word that begins like one.
func (p *Program) conversationNames(word string) (names []completion) {
	ctx, cancel := context.WithTimeout(context.Background(), completePatience)
	defer cancel()
	from, err := p.localPast(ctx, p.Config)
	if err != nil {
		return nil
	}
	defer func() { _ = from.close() }()
	for c, err := range from.Conversations(ctx) {
		if err != nil || len(names) == offeredConversations {
			break
		}
		name := strconv.Itoa(len(names) + 1)
		if strings.HasPrefix(word, "cnv_") {
			name = c.ID
		}
		names = append(names, completion{name, oneLine(c.Title)})
	}
	return names
}

// completePatience bounds how long a shell waits for what may come.
const completePatience = 2 * time.Second

// completions are the words that may stand behind others and begin as word does. names returns the names of things of a kind.
func completions(here *kong.Node, before []string, word string, names func(kind, word string) []completion) (out []completion) {
	add := func(text, about string) {
		if strings.HasPrefix(text, word) {
			out = append(out, completion{text, strings.Join(strings.Fields(about), " ")})
		}
	}
	remote := false // on a server, whose things are not looked up
	values := func(v *kong.Value, word string) []completion {
		if kind := v.Tag.Get("complete"); kind != "" && !remote {
			return names(kind, word)
		}
		return enumerated(v)
	}
	var flag *kong.Flag // whose value is to come
	given := map[*kong.Flag]bool{}
	arguments := 0
	for _, w := range before {
		switch next := child(here, w); {
		case flag != nil:
			flag = nil
		case w == "--":
			return nil // the rest belongs to a program
		case strings.HasPrefix(w, "-") && w != "-":
			name, _, whole := strings.Cut(w, "=")
			f := flagNamed(here, name)
			given[f] = true
			remote = remote || f != nil && f.Name == "server"
			if f != nil && !whole && !f.IsBool() && !f.IsCounter() {
				flag = f
			}
		case next != nil:
			here = next
		default:
			arguments++
		}
	}
	switch {
	case flag != nil:
		for _, value := range values(flag.Value, word) {
			add(value.word, value.about)
		}
	case strings.HasPrefix(word, "-"):
		if name, begun, whole := strings.Cut(word, "="); whole {
			if f := flagNamed(here, name); f != nil {
				for _, value := range values(f.Value, begun) {
					add(name+"="+value.word, value.about)
				}
			}
			return out
		}
		for _, f := range flagsOf(here) {
			if !f.Hidden && (!given[f] || f.IsCumulative()) {
				add("--"+f.Name, f.Help)
			}
		}
	case len(here.Children) > 0:
		for _, c := range here.Children {
			if !c.Hidden {
				add(c.Name, c.Help)
			}
		}
	case len(here.Positional) > 0:
		at := min(arguments, len(here.Positional)-1)
		if arguments > at && !here.Positional[at].IsCumulative() {
			return nil
		}
		for _, value := range values(here.Positional[at], word) {
			add(value.word, value.about)
		}
	}
	return out
}

func child(here *kong.Node, name string) *kong.Node {
	if at := slices.IndexFunc(here.Children, func(c *kong.Node) bool { return c.Name == name }); at >= 0 {
		return here.Children[at]
	}
	return nil
}

// flagsOf are the flags of a command, of the one that it stands for where none below it is named, and of those above it.
func flagsOf(here *kong.Node) (out []*kong.Flag) {
	if here.DefaultCmd != nil {
		out = append(out, here.DefaultCmd.Flags...)
	}
	for ; here != nil; here = here.Parent {
		out = append(out, here.Flags...)
	}
	return out
}

func flagNamed(here *kong.Node, name string) *kong.Flag {
	for _, f := range flagsOf(here) {
		if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
			return f
		}
	}
	return nil
}

// enumerated are the values that are named for a flag or an argument.
func enumerated(v *kong.Value) (values []completion) {
	if v.Enum == "" {
		return nil
	}
	for _, value := range slices.Sorted(maps.Keys(v.EnumMap())) {
		if value != "" {
			values = append(values, completion{value, ""})
		}
	}
	return values
}
