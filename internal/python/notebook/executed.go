package notebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"cove/internal/core/problem"
	"cove/internal/python/oldnotebook"
)

// Program is a notebook of somebody else's that is run: its cells of code, and all else as it was.
type Program struct {
	Cells []ProgramCell

	all   map[string]json.RawMessage
	cells []map[string]json.RawMessage
}

// ProgramCell is one cell of code.
type ProgramCell struct {
	Code  string
	Fails bool // it is tagged raises-exception: an error in it does not end the run, as in Jupyter

	at int
}

// ReadProgram reads a Jupyter notebook of format 2, 3 or 4, which is of format 4 from then on. Its code must be Python.
func ReadProgram(text []byte) (*Program, error) {
	p := &Program{}
	var about struct {
		Format   int `json:"nbformat"`
		Metadata struct {
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
		} `json:"metadata"`
	}
	text = oldnotebook.UpgradeText(text)
	err := json.Unmarshal(text, &p.all)
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err == nil && about.Format == 4 {
		err = json.Unmarshal(p.all["cells"], &p.cells)
	}
	if err != nil {
		return nil, problem.New(problem.InputRefused, "the file is not a Jupyter notebook").WithCause(err)
	}
	if about.Format != 4 {
		return nil, problem.New(problem.InputRefused, fmt.Sprintf("the notebook has format %d, and cove runs formats 2 to 4", about.Format)).WithHint("open and save it in Jupyter, which writes format 4")
	}
	for _, language := range []string{about.Metadata.Kernel.Language, about.Metadata.Language.Name} {
		if language != "" && !strings.EqualFold(language, "python") && !strings.EqualFold(language, "ipython") {
			return nil, problem.New(problem.InputRefused, fmt.Sprintf("the notebook's language is %.40q, and cove runs Python", language))
		}
	}
	for i, cell := range p.cells {
		c, is, err := programCell(cell)
		if err != nil {
			return nil, problem.New(problem.InputRefused, fmt.Sprintf("cell %d of the notebook is none of format 4", i+1)).WithCause(err)
		}
		if c.at = i; is {
			p.Cells = append(p.Cells, c)
		}
	}
	return p, nil
}

func programCell(cell map[string]json.RawMessage) (c ProgramCell, is bool, err error) {
	var kind string
	if err := json.Unmarshal(cell["cell_type"], &kind); err != nil || kind != "code" {
		return c, false, err
	}
	var lines []string
	if json.Unmarshal(cell["source"], &c.Code) != nil {
		if err := json.Unmarshal(cell["source"], &lines); err != nil {
			return c, false, err
		}
		c.Code = strings.Join(lines, "")
	}
	var about struct {
		Tags []string `json:"tags"`
	}
	if raw := cell["metadata"]; raw != nil {
		err = json.Unmarshal(raw, &about)
	}
	c.Fails = slices.Contains(about.Tags, "raises-exception")
	return c, strings.TrimSpace(c.Code) != "", err
}

// Ran puts what came of a cell into the notebook, as its execution with that number.
func (p *Program) Ran(c ProgramCell, ran Cell, number int) error {
	b := builder{count: number - 1}
	b.code(ran)
	made := b.cells[len(b.cells)-1].(codeCell)
	outputs, err := json.Marshal(made.Outputs)
	if err != nil {
		return err
	}
	p.cells[c.at]["outputs"] = outputs
	p.cells[c.at]["execution_count"] = json.RawMessage(fmt.Sprint(number))
	return nil
}

// Clear takes the outputs of all cells away, so that none is left of an earlier run.
func (p *Program) Clear() {
	for _, c := range p.Cells {
		p.cells[c.at]["outputs"], p.cells[c.at]["execution_count"] = json.RawMessage("[]"), json.RawMessage("null")
	}
}

// Write writes the notebook.
func (p *Program) Write(w io.Writer) error {
	cells, err := json.Marshal(p.cells)
	if err != nil {
		return err
	}
	p.all["cells"] = cells
	text, err := json.Marshal(p.all)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", " "); err != nil {
		return err
	}
	_, err = w.Write(append(b.Bytes(), '\n'))
	return err
}
