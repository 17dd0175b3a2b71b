package eval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// ownFile is the user's own file of tasks, tasks.yaml.
type ownFile struct {
	Tasks []ownTask `yaml:"tasks"`
}

// ownTask is a task, or a series of them that share a session.
type ownTask struct {
	ID        string    `yaml:"id"`
	Prompt    string    `yaml:"prompt"`
	Files     ownFiles  `yaml:"files"`
	Check     ownChecks `yaml:"check"`
	Reference string    `yaml:"reference"`
	Series    string    `yaml:"series"`
	Tasks     []ownTask `yaml:"tasks"`
}

// ownFiles is a list of paths beside the file of tasks, or a mapping from paths in the workspace to such paths.
type ownFiles map[string]string

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *ownFiles) UnmarshalYAML(node *yaml.Node) error {
	*f = ownFiles{}
	if node.Kind == yaml.MappingNode {
		return node.Decode((*map[string]string)(f))
	}
	var list []string
	if err := node.Decode(&list); err != nil {
		return err
	}
	for _, name := range list {
		(*f)[path.Base(filepath.ToSlash(name))] = name
	}
	return nil
}

// ownChecks is one check, or a list of them.
type ownChecks []ownCheck

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *ownChecks) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		node = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{node}, Line: node.Line}
	}
	for _, one := range node.Content {
		var parsed ownCheck
		if err := known(one, "tests", "code", "equals", "number", "tolerance", "contains", "regex", "values", "file", "content", "same_as"); err != nil {
			return err
		}
		if err := one.Decode(&parsed); err != nil {
			return err
		}
		*c = append(*c, parsed)
	}
	return nil
}

// known refuses keys that a mapping cannot have: a decoder of a part of a document does not.
func known(node *yaml.Node, keys ...string) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a check is a mapping such as `number: 42`", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i]; !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+key.Value+" ") {
			return fmt.Errorf("line %d: a check has no %q; it has %s", key.Line, key.Value, strings.Join(keys, ", "))
		}
	}
	return nil
}

// ownCheck has one of the first eight, and what belongs to it.
type ownCheck struct {
	Tests    *string           `yaml:"tests"`
	Code     *string           `yaml:"code"`
	Equals   *string           `yaml:"equals"`
	Number   *float64          `yaml:"number"`
	Contains ownTexts          `yaml:"contains"`
	Regex    *string           `yaml:"regex"`
	Values   map[string]string `yaml:"values"`
	File     *string           `yaml:"file"`

	Tolerance float64 `yaml:"tolerance"` // of number and values
	Content   *string `yaml:"content"`   // of file
	SameAs    string  `yaml:"same_as"`   // of file: a file beside the file of tasks
}

// ownTexts is a text, or a list of texts.
type ownTexts []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *ownTexts) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = ownTexts{node.Value}
		return nil
	}
	return node.Decode((*[]string)(t))
}

// own reads the user's tasks.
func (l *loader) own(text []byte) ([]Task, error) {
	var f ownFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, l.wrong("%s", ownProblem(err))
	}
	var tasks []Task
	for n, t := range f.Tasks {
		if t.Series == "" {
			one, err := l.ownOne(t, fmt.Sprint(n+1))
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, one)
			continue
		}
		if len(t.Tasks) == 0 || t.Prompt != "" || len(t.Check) > 0 || t.ID != "" || t.Reference != "" {
			return nil, l.wrong("the series %q has a name, tasks and perhaps files, and nothing else", t.Series)
		}
		for k, of := range t.Tasks {
			if of.Series != "" || k > 0 && len(of.Files) > 0 {
				return nil, l.wrong("the series %q: a task of a series is no series, and brings no files", t.Series)
			}
			if k == 0 && of.Files == nil {
				of.Files = t.Files
			}
			one, err := l.ownOne(of, fmt.Sprintf("%s/%d", t.Series, k+1))
			if err != nil {
				return nil, err
			}
			one.Series = t.Series
			tasks = append(tasks, one)
		}
	}
	return tasks, nil
}

// unknownField is what package yaml says of a field that is not known.
var unknownField = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`field (.+) not found in type \S+`) })

// ownProblem is an error of package yaml in one line, without names of types.
func ownProblem(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n")
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " ")
	return bounded(unknownField().ReplaceAllString(text, "there is no field $1 here"), 1000)
}

func (l *loader) ownOne(o ownTask, number string) (Task, error) {
	t := Task{ID: o.ID, Prompt: strings.TrimSpace(o.Prompt), Reference: o.Reference}
	if t.ID == "" {
		t.ID = nameOf(l.path) + "/" + number
	}
	switch {
	case t.Prompt == "":
		return t, l.wrong("the task %s has no prompt", t.ID)
	case len(o.Check) == 0:
		return t, l.wrong("the task %s has no check", t.ID)
	case len(o.Tasks) > 0:
		return t, l.wrong("the task %s has tasks, but no name as a series", t.ID)
	}
	for at, name := range o.Files {
		f, err := inputFile(l.beside(name), path.Clean(at))
		if err != nil {
			return t, err
		}
		if !filepath.IsLocal(at) {
			return t, l.wrong("the task %s: %q is not a path in the workspace", t.ID, at)
		}
		t.Files = append(t.Files, f)
	}
	sortFiles(t.Files)
	for _, one := range o.Check {
		c, err := one.check(l)
		if err != nil {
			return t, l.wrong("the task %s: %s", t.ID, err)
		}
		t.Checks = append(t.Checks, c)
	}
	return t, nil
}

func (l *loader) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(l.path), name)
}

// check returns the one check that is written down, or says what is wrong with it.
func (o ownCheck) check(l *loader) (Check, error) {
	c := Check{Tolerance: o.Tolerance}
	kinds := 0
	take := func(kind CheckKind, text *string) {
		if text != nil {
			kinds, c.Kind, c.Text = kinds+1, kind, *text
		}
	}
	take(CheckTests, o.Tests)
	take(CheckCode, o.Code)
	take(CheckEquals, o.Equals)
	take(CheckRegex, o.Regex)
	if o.Number != nil {
		kinds, c.Kind, c.Number = kinds+1, CheckNumber, *o.Number
	}
	if len(o.Contains) > 0 {
		kinds, c.Kind, c.Texts = kinds+1, CheckContains, o.Contains
	}
	if len(o.Values) > 0 {
		kinds, c.Kind, c.Values = kinds+1, CheckValues, o.Values
	}
	if o.File != nil {
		kinds, c.Kind, c.Path = kinds+1, CheckFile, *o.File
	}
	switch {
	case kinds != 1:
		return c, fmt.Errorf("a check has exactly one of tests, code, equals, number, contains, regex, values and file; several checks are a list")
	case o.Tolerance < 0 || o.Tolerance > 0 && c.Kind != CheckNumber && c.Kind != CheckValues:
		return c, fmt.Errorf("tolerance is of number and values, and not below 0")
	case (o.Content != nil || o.SameAs != "") && c.Kind != CheckFile || o.Content != nil && o.SameAs != "":
		return c, fmt.Errorf("content and same_as are of file, and only one of them")
	case c.Kind == CheckFile && !filepath.IsLocal(c.Path):
		return c, fmt.Errorf("%q is not a path in the workspace", c.Path)
	case c.Kind == CheckRegex:
		if _, err := regexp.Compile(c.Text); err != nil {
			return c, err
		}
	}
	return c, c.expect(o, l)
}

// expect sets what a file has to be.
func (c *Check) expect(o ownCheck, l *loader) error {
	switch {
	case o.Content != nil:
		sum := sha256.Sum256([]byte(*o.Content))
		c.Exact, c.Sum = true, hex.EncodeToString(sum[:])
	case o.SameAs != "":
		f, err := inputFile(l.beside(o.SameAs), c.Path)
		if err != nil {
			return err
		}
		c.Exact, c.Sum = true, f.Sum
	}
	return nil
}
