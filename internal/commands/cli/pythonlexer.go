package cli

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// newPythonLexer divides Python into what is coloured differently and the rest. chroma's own collection of lexers has a fuller one, but costs every
// process of this binary, the ones in sandboxes too, 3 MB of memory and several milliseconds at its start.
func newPythonLexer() chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: "Python", EnsureNL: true}, pythonRules)
}

func pythonRules() chroma.Rules {
	const prefix = `[rRbBuUfFtT]{0,2}`
	word := func(names string) string { return `\b(?:` + strings.Join(strings.Fields(names), "|") + `)\b` }
	stringState := func(quote, content string) []chroma.Rule {
		return []chroma.Rule{
			{Pattern: quote, Type: chroma.LiteralString, Mutator: chroma.Pop(1)},
			{Pattern: content, Type: chroma.LiteralString},
			{Pattern: `\\.?`, Type: chroma.LiteralString},
		}
	}
	// A string on one line ends with the line even when its quote is missing, as it is while it is being written.
	lineState := func(quote string) []chroma.Rule {
		return append([]chroma.Rule{{Pattern: `\n`, Type: chroma.Text, Mutator: chroma.Pop(1)}}, stringState(quote, `[^`+quote+`\\\n]+`)...)
	}
	return chroma.Rules{
		"root": {
			{Pattern: `#[^\n]*`, Type: chroma.Comment},
			{Pattern: prefix + `"""`, Type: chroma.LiteralString, Mutator: chroma.Push("long double")},
			{Pattern: prefix + `'''`, Type: chroma.LiteralString, Mutator: chroma.Push("long single")},
			{Pattern: prefix + `"`, Type: chroma.LiteralString, Mutator: chroma.Push("double")},
			{Pattern: prefix + `'`, Type: chroma.LiteralString, Mutator: chroma.Push("single")},
			{Pattern: `\b(def)([ \t]+)(\w+)`, Type: chroma.ByGroups(chroma.Keyword, chroma.Text, chroma.NameFunction)},
			{Pattern: `\b(class)([ \t]+)(\w+)`, Type: chroma.ByGroups(chroma.Keyword, chroma.Text, chroma.NameClass)},
			{Pattern: `(?<![\w\)\]}] *)@[ \t]*[\w.]+`, Type: chroma.NameDecorator},
			{Pattern: word("False None True as assert async await break class continue def del elif else except finally for from global if import lambda nonlocal pass raise return try while with yield"), Type: chroma.Keyword},
			{Pattern: word("and in is not or"), Type: chroma.OperatorWord},
			{Pattern: `(?<!\.)` + word("abs all any bool bytes dict dir divmod enumerate filter float format frozenset getattr hasattr hash help input int isinstance issubclass iter len list map max min next object open ord pow print property range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip"), Type: chroma.NameBuiltin},
			{Pattern: `\b0[xX][\da-fA-F_]+|\b0[oO][0-7_]+|\b0[bB][01_]+|(?:\b\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?`, Type: chroma.LiteralNumber},
			{Pattern: `\w+`, Type: chroma.Name},
			{Pattern: `\s+|.`, Type: chroma.Text},
		},
		"long double": stringState(`"""`, `(?:[^"\\]|"(?!""))+`),
		"long single": stringState(`'''`, `(?:[^'\\]|'(?!''))+`),
		"double":      lineState(`"`),
		"single":      lineState(`'`),
	}
}
