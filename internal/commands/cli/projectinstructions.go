package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

type projectInstructions struct {
	adminFlags
	Project string  `arg:"" optional:"" help:"The project's name or id (default: local; on a server, the project of the key)."`
	Set     *string `placeholder:"TEXT" help:"Set them to this text."`
	File    string  `short:"f" placeholder:"FILE" help:"Set them to the text of a file; - reads standard input."`
	Clear   bool    `help:"Remove them."`
}

// Help is the long help.
func (projectInstructions) Help() string {
	return `Models follow them in every question of the page, the API, cove ask and cove chat: units, language, columns to know about, the style of
charts. They hold for questions that are asked afterwards. Clients of OpenAI's, Anthropic's and Google's protocols send their own.

Examples:

    cove project instructions
    cove project instructions --set 'Amounts are in euros. Round to whole ones.'
    cove project instructions lab -f instructions.md
    cove project instructions --clear`
}

func (c *projectInstructions) run(ctx context.Context, p *Program) (int, error) {
	text, set, err := c.text(p)
	if err != nil {
		return 0, err
	}
	return 0, p.administer(ctx, c.adminFlags, func(a administration) error {
		if !set {
			text, err := a.Instructions(ctx, c.Project)
			if err != nil {
				return err
			}
			if text == "" {
				_, err = lang.Fprintf(p.Err, "the project has no instructions; set some: cove project instructions --set TEXT\n")
				return err
			}
			_, err = fmt.Fprintln(p.Out, text)
			return err
		}
		if err := a.SetInstructions(ctx, c.Project, text); err != nil {
			return err
		}
		if text == "" {
			_, err := lang.Fprintf(p.Err, "the project has no instructions any more\n")
			return err
		}
		_, err := lang.Fprintf(p.Err, "models follow these instructions in questions that are asked from now on\n")
		return err
	})
}

// text returns the text to set, and whether one was given.
func (c *projectInstructions) text(p *Program) (text string, given bool, err error) {
	ways := 0
	for _, way := range []bool{c.Set != nil, c.File != "", c.Clear} {
		if way {
			ways++
		}
	}
	switch {
	case ways > 1:
		return "", false, problem.New(problem.Usage, "--set, --file and --clear stand alone").WithHint("give one of them")
	case c.Set != nil:
		text = *c.Set
	case c.File != "":
		if text, err = c.read(p); err != nil {
			return "", false, err
		}
	}
	if text = strings.TrimSpace(text); text == "" && ways == 1 && !c.Clear {
		return "", false, problem.New(problem.InstructionsInvalid, "the instructions are empty").WithHint("to remove them: cove project instructions --clear")
	}
	return text, ways == 1, nil
}

// read returns the text of the file, which may be longer than instructions by one byte at most: enough to refuse it.
func (c *projectInstructions) read(p *Program) (string, error) {
	from := p.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	const bytesOfCharacter = 4
	text, err := io.ReadAll(io.LimitReader(from, auth.LongestInstructions*bytesOfCharacter+1))
	return string(text), err
}
