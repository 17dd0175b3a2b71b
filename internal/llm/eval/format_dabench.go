package eval

import (
	"path/filepath"
	"strings"
)

// valueTolerance is how near the values of DABench's answers have to be, as its own evaluation has it.
const valueTolerance = 1e-6

// dabench reads questions over files, as InfiAgent-DABench has them: da-dev-questions.jsonl, with the right answers in da-dev-labels.jsonl and the files in
// da-dev-tables.
func (l *loader) dabench(rows []row) ([]Task, error) {
	labels, err := l.labels()
	if err != nil {
		return nil, err
	}
	data := l.o.Data
	if data == "" {
		name := filepath.Base(strings.TrimSuffix(l.path, ".gz"))
		data = filepath.Join(filepath.Dir(l.path), strings.TrimSuffix(strings.Replace(name, "questions", "tables", 1), filepath.Ext(name)))
	}
	files := map[string]File{}
	var tasks []Task
	for n, r := range rows {
		id := scalar(r.ID)
		values := labels[id]
		switch {
		case id == "" || r.Question == "" || r.FileName == "":
			return nil, l.wrong("question %d has no id, question or file_name", n+1)
		case len(values) == 0:
			return nil, l.wrong("question %s has no label", id)
		case filepath.Base(r.FileName) != r.FileName:
			return nil, l.wrong("the file_name of question %s is not a plain name", id)
		}
		f, ok := files[r.FileName]
		if !ok {
			if f, err = inputFile(filepath.Join(data, r.FileName), r.FileName); err != nil {
				return nil, err
			}
			files[r.FileName] = f
		}
		prompt := strings.TrimSpace(r.Question) + "\n\nThe data is in " + r.FileName + "."
		if r.Constraints != "" {
			prompt += "\n\nConstraints: " + strings.TrimSpace(r.Constraints)
		}
		prompt += "\n\nYour answer has to have this form: " + strings.TrimSpace(r.Form)
		tasks = append(tasks, Task{ID: "DABench/" + id, Prompt: prompt, Files: []File{f}, Checks: []Check{{Kind: CheckValues, Values: values, Tolerance: valueTolerance}}})
	}
	return tasks, nil
}

// labels reads the right answers, by id.
func (l *loader) labels() (map[string]map[string]string, error) {
	path := l.o.Labels
	if path == "" {
		name := filepath.Base(l.path)
		if !strings.Contains(name, "questions") {
			return nil, l.wrong("cove cannot tell where its labels are; name their file with --labels")
		}
		path = filepath.Join(filepath.Dir(l.path), strings.Replace(name, "questions", "labels", 1))
	}
	text, err := readSource(path)
	if err != nil {
		return nil, err
	}
	of := loader{path: path}
	rows, err := of.parse(text)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for n, r := range rows {
		values := map[string]string{}
		for _, pair := range r.Answers {
			if len(pair) != 2 {
				return nil, of.wrong("label %d has an answer that is not a name and a value", n+1)
			}
			values[pair[0]] = pair[1]
		}
		out[scalar(r.ID)] = values
	}
	return out, nil
}
