package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
)

type configCmd struct {
	Show configShow `cmd:"" default:"1" help:"Show every setting, what it means and its value."`
	Get  configGet  `cmd:"" help:"Print the value of a setting."`
	Set  configSet  `cmd:"" help:"Write a setting into the config file."`
	Path configPath `cmd:"" help:"Print where the config file is, or would be."`
	Init configInit `cmd:"" help:"Write a config file that has every setting as a comment."`
}

// Help is the long help.
func (configCmd) Help() string {
	return `What cove config prints can be used as the config file. Keys of model services are not shown.

Examples:

    cove config get sandbox.memory
    cove config set sandbox.memory 4GiB
    cove config set sandbox.memory ""      # its default again
    $EDITOR "$(cove config path)"`
}

type configShow struct{}

func (configShow) run(_ context.Context, p *Program) (int, error) {
	if err := p.Config.Document(p.Out); err != nil {
		return 0, err
	}
	return 0, p.ConfigErr
}

type configGet struct {
	Name string `arg:"" help:"The setting, such as sandbox.memory, or its variable, such as COVE_MEMORY."`
	JSON bool   `name:"json" help:"Print it as one JSON object, with what it means."`
}

func (c *configGet) run(_ context.Context, p *Program) (int, error) {
	s, err := p.Config.Setting(c.Name)
	if err != nil {
		return 0, err
	}
	switch {
	case c.JSON:
		shown := map[string]any{"key": s.Key, "variable": s.Variable, "meaning": s.Meaning}
		if s.Secret {
			shown["set"] = s.Set
		} else {
			shown["value"] = s.Value
		}
		err = p.printJSON(shown)
	case s.Secret && s.Set:
		fmt.Fprintln(p.Err, "cove: "+lang.Text(s.Key+" is set; it is not shown"))
	case s.Secret:
		fmt.Fprintln(p.Err, "cove: "+lang.Text(s.Key+" is not set"))
	default:
		_, err = fmt.Fprintln(p.Out, s.Value)
	}
	if err != nil {
		return 0, err
	}
	return 0, p.ConfigErr
}

type configSet struct {
	Name  string `arg:"" help:"The setting, such as sandbox.memory."`
	Value string `arg:"" help:"Its value, such as 4GiB; an empty one takes the setting out of the file; - reads it from standard input, as for keys that the history of the shell is not to have."`
}

func (c *configSet) run(_ context.Context, p *Program) (int, error) {
	s, err := p.Config.Setting(c.Name)
	if err == nil && c.Value == "-" {
		c.Value, err = firstLine(p.In)
	}
	if err == nil {
		err = p.Config.SetInFile(c.Name, c.Value)
	}
	if err != nil {
		return 0, err
	}
	fmt.Fprintln(p.Err, "cove: "+lang.Text(oneLine(p.Config.File)+" has it"))
	if p.Getenv(s.Variable) != "" {
		lang.Fprintf(p.Err, "  the variable %s is set here, and goes before the file\n", s.Variable)
	}
	return 0, nil
}

// firstLine is the first line of a text, which is not long.
func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimRight(line, "\r\n"), err
}

type configPath struct{}

func (configPath) run(_ context.Context, p *Program) (int, error) {
	_, err := fmt.Fprintln(p.Out, p.Config.File)
	if _, missing := os.Stat(p.Config.File); missing != nil {
		notef(p.Err, "it is not there yet; cove config init makes it")
	}
	return 0, err
}

type configInit struct{}

func (configInit) run(_ context.Context, p *Program) (int, error) {
	if p.Config.File == "" {
		return 0, problem.New(problem.ConfigUnreadable, "it is not known where the config file would be").WithHint("set HOME, XDG_CONFIG_HOME or COVE_CONFIG")
	}
	if err := p.Config.Init(p.Getenv); err != nil {
		return 0, err
	}
	_, err := fmt.Fprintln(p.Out, p.Config.File)
	return 0, err
}
