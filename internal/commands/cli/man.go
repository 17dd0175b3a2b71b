package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"cove/internal/core/problem"
)

type manCmd struct {
	Dir string `arg:"" help:"The folder for cove.1, cove-run.1 and so on; made when needed."`
}

// Help is the long help.
func (manCmd) Help() string {
	return `For example: cove man ~/.local/share/man/man1, and then: man cove-run`
}

func (c *manCmd) run(_ context.Context, p *Program) (int, error) {
	model, err := wholeModel(p)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return 0, problem.New(problem.OutUnusable, "cannot make the folder "+oneLine(c.Dir)).WithCause(err)
	}
	n := 0
	var write func(here *kong.Node, name string) error
	write = func(here *kong.Node, name string) error {
		if here.Hidden {
			return nil
		}
		n++
		if err := os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(manPage(here, name, p.Build.String())), 0o644); err != nil {
			return problem.New(problem.OutUnusable, "cannot write the page "+oneLine(name)).WithCause(err)
		}
		for _, sub := range here.Children {
			if err := write(sub, name+"-"+sub.Name); err != nil {
				return err
			}
		}
		return nil
	}
	if err := write(model.Node, "cove"); err != nil {
		return 0, err
	}
	notef(p.Err, "%d pages are in %s", n, oneLine(c.Dir))
	return 0, nil
}

// manPage is the page of a command in the language of man (man-pages(7), groff_man(7)).
func manPage(here *kong.Node, name, version string) string {
	var b strings.Builder
	command := strings.ReplaceAll(name, "-", " ")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Commands of cove\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), "cove "+version, roff(name), roff(here.Help))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(command))
	for _, p := range here.Positional {
		fmt.Fprintf(&b, "%s\n", roff(p.Summary()))
	}
	if len(here.Children) > 0 {
		b.WriteString(roff("<command>") + "\n")
	}
	b.WriteString("[\\fIflags\\fR]\n")
	if here.Detail != "" {
		b.WriteString(".SH DESCRIPTION\n" + manText(here.Detail))
	}
	if len(here.Positional) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, p := range here.Positional {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(p.Summary()), roff(p.Help))
		}
	}
	flags := false
	for _, f := range flagsOf(here) {
		if f.Hidden {
			continue
		}
		if !flags {
			flags = true
			b.WriteString(".SH OPTIONS\n")
		}
		short := ""
		if f.Short != 0 {
			short = "-" + string(f.Short) + ", "
		}
		value := ""
		if !f.IsBool() && !f.IsCounter() {
			value = "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(short+"--"+f.Name+value), roff(f.Help))
	}
	see := []string{}
	for _, sub := range here.Children {
		if sub.Hidden {
			continue
		}
		if len(see) == 0 {
			b.WriteString(".SH COMMANDS\n")
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name), roff(sub.Help))
		see = append(see, fmt.Sprintf(".BR %s (1)", roff(name+"-"+sub.Name)))
	}
	if above := strings.LastIndex(name, "-"); above > 0 {
		see = append([]string{fmt.Sprintf(".BR %s (1)", roff(name[:above]))}, see...)
	}
	if len(see) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(see, " ,\n") + "\n")
	}
	return b.String()
}

// manText keeps paragraphs, and indented lines as they are.
func manText(text string) string {
	var b strings.Builder
	kept := false
	for _, line := range strings.Split(text, "\n") {
		indented := strings.HasPrefix(line, "    ")
		switch {
		case indented && !kept:
			b.WriteString(".PP\n.RS 4\n.nf\n")
		case !indented && kept && strings.TrimSpace(line) != "":
			b.WriteString(".fi\n.RE\n.PP\n")
		case strings.TrimSpace(line) == "" && !kept:
			b.WriteString(".PP\n")
			continue
		}
		kept = indented || kept && strings.TrimSpace(line) == ""
		if strings.TrimSpace(line) != "" || kept {
			b.WriteString(roff(strings.TrimPrefix(line, "    ")) + "\n")
		}
	}
	if kept {
		b.WriteString(".fi\n.RE\n")
	}
	return b.String()
}

// roff escapes what the language of man would take for its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
