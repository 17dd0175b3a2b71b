package cli

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
)

// PipAdvice are lines that the pip of the sandbox says.
var PipAdvice = pipAdvice

// LateWords is what is said late after an interruption that came after these events of a question, which this process or another one answers.
func LateWords(here bool, events ...loop.Event) string {
	var b bytes.Buffer
	p := &Program{Out: io.Discard, Err: io.Discard}
	v := &askView{p: p, json: true, narrator: newNarrator(p, io.Discard, nil)}
	if here {
		v.code = &runningCode{to: &b}
	}
	for _, e := range events {
		_ = v.event(e)
	}
	if v.code != nil {
		v.code.tellLate()
	}
	return b.String()
}

// RoomDetail is what the doctor says of so many free bytes.
func RoomDetail(cfg config.Config, free int64) string { return checkRoom(cfg, free).Detail }

// WriteWhole puts a file in place.
func WriteWhole(name string, mode os.FileMode, fill func(io.Writer) error) (int64, error) {
	return writeWhole(name, mode, fill)
}

// HelpTexts are the texts of the help, as the grammar has them.
func HelpTexts() (texts []string, err error) {
	model, err := wholeModel(&Program{})
	if err != nil {
		return nil, err
	}
	var visit func(n *kong.Node)
	visit = func(n *kong.Node) {
		texts = append(texts, n.Help)
		for _, p := range paragraphs(n.Detail) {
			if !isExample(p) {
				texts = append(texts, p)
			}
		}
		for _, p := range n.Positional {
			texts = append(texts, p.OrigHelp)
		}
		for _, f := range n.Flags {
			texts = append(texts, f.OrigHelp)
		}
		for _, c := range n.Children {
			visit(c)
		}
	}
	visit(model.Node)
	return texts, nil
}

// DoctorScreen is what a report of the doctor looks like.
func DoctorScreen() string {
	var b bytes.Buffer
	p := &Program{Out: &b, Err: &b, ConfigErr: problem.New(problem.ConfigInvalid, "it is not known where the config file would be").WithHint("set HOME, XDG_CONFIG_HOME or COVE_CONFIG")}
	for _, c := range []check{
		checkSettings(context.Background(), p, config.Config{}),
		movedSettings(config.Config{File: "/c.toml", Moved: []config.Moved{{From: "memory", To: "sandbox.memory"}}}),
		checkPackages(context.Background(), p, config.Config{}),
		checkFonts(context.Background(), p, config.Config{Packages: config.Packages{Set: "minimal"}}),
		{Name: "model", Status: warned, Detail: "x", Fix: "first line\nsecond line"},
	} {
		printCheck(p, c)
	}
	return b.String()
}
