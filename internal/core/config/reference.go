package config

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

const preface = `# Settings

Later wins: defaults, the config file, variables of the environment, options of the command. ` + "`cove config`" + ` prints every setting with its present value, as a file that
could be used; ` + "`cove doctor`" + ` says what is wrong with one. The file is ` + "`~/.config/cove/config.toml`" + `, or what ` + "`COVE_CONFIG`" + ` or ` + "`cove serve --config`" + ` names:

    [sandbox]
    memory = "4GiB"
    timeout = "10m"

    [quota.project]
    sessions = 20

` + "`cove config init` writes that file with every setting as a comment, `cove config set sandbox.memory 4GiB` changes one line of it, and `cove config get sandbox.memory`" + ` prints what holds.

Sizes are written as ` + "`512MiB`, `2G` or `1048576`" + ` (K, M, G and T are powers of 1024), times as ` + "`90s`, `5m`, `1h30m` or `3d`" + ` (a bare number counts seconds), lists as
` + "`[\"one\", \"two\"]`" + ` in the file and as ` + "`one,two`" + ` in a variable. A limit of 0 is no limit; where that cannot be, 0 is refused. Options hold for the commands that have
them, as ` + "`--help`" + ` says; ` + "`--no-...`" + ` switches a setting off.

**Secrets** can be in files of their own, which is where systemd, Kubernetes and Docker put them. Of each setting that is one ("secret" below), the variable with ` + "`_FILE`" + ` at its end names such a file
(` + "`OPENAI_API_KEY_FILE=/run/secrets/openai`" + `), as does the key with ` + "`_file`" + ` at its end in the config file (` + "`openai_api_key_file = \"/run/secrets/openai\"`" + `); and where systemd has filled the folder
` + "`$CREDENTIALS_DIRECTORY`" + `, the file there that has the setting's key as its name is taken (` + "`LoadCredential=models.openai_api_key:/etc/cove/openai`" + `). White space around the secret does not count; a setting and
its file together are refused; ` + "`cove serve` and `cove doctor`" + ` tell of files that every user of the machine can read.

This page is made of the settings' own descriptions: ` + "`go test ./internal/core/config -update`" + `.
`

const former = `
## Former keys

Before there were tables, settings had keys of one word at the top of the file. Those still work; ` + "`cove doctor`" + ` names the new ones. A file that has both is refused.

| before | now |
|---|---|
`

// Reference writes every setting with its defaults, as docs/configuration.md.
func Reference(w io.Writer) error {
	c := Default(func(name string) string { return map[string]string{"HOME": "~"}[name] })
	var b, flat strings.Builder
	b.WriteString(preface)
	var table []string
	for _, f := range c.fields() {
		if !slices.Equal(f.table, table) {
			if table == nil || f.table[0] != table[0] {
				group, _ := reflect.TypeFor[Config]().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, f.table[0]) })
				fmt.Fprintf(&b, "\n## %s\n\n%s\n", f.table[0], group.Tag.Get("doc"))
			}
			table = f.table
			fmt.Fprintf(&b, "\n| `[%s]` | variable | option | default | in | 0 means | what it does |\n|---|---|---|---|---|---|---|\n", strings.Join(table, "."))
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s | %s | %s |\n", f.tag.Get("toml"), f.tag.Get("env"), code(f.tag.Get("flag")), f.otherwise(), f.unit(), f.zero(), f.tag.Get("doc"))
		if old := f.tag.Get("flat"); old != "" {
			fmt.Fprintf(&flat, "| `%s` | `%s` |\n", old, f.key())
		}
	}
	_, err := io.WriteString(w, b.String()+former+flat.String())
	return err
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// otherwise is the setting's default for readers of every machine.
func (f field) otherwise() string {
	if words := f.tag.Get("default"); words != "" {
		return words
	}
	if s, ok := f.value.Interface().(fmt.Stringer); ok {
		return code(s.String())
	}
	return code(fmt.Sprint(f.value.Interface()))
}

// unit is what the setting is given in.
func (f field) unit() string {
	switch f.value.Interface().(type) {
	case Size:
		return "size"
	case Duration:
		return "time"
	case List:
		return "list"
	case bool:
		return "true or false"
	case string:
		if f.secret() {
			return "secret"
		}
		return "text"
	}
	return f.tag.Get("unit")
}

// zero is what 0 means to a number.
func (f field) zero() string {
	if words := f.tag.Get("zero"); words != "" {
		return words
	}
	if f.value.CanInt() || f.value.CanFloat() {
		return "refused"
	}
	return ""
}
