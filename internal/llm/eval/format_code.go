package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
)

// Prompts with tests: HumanEval, BigCodeBench and ODEX. A task is a function to write, which hidden tests call.

// inSession tells the model where its function is looked for.
const inSession = "\n\nDefine it under this name in the Python session, by running its complete definition with all imports that it needs. " +
	"Hidden tests call it there afterwards; try it out as far as you see fit."

func fenced(code string) string { return "```python\n" + strings.TrimRight(code, "\n") + "\n```" }

// codeTask is what the three formats have in common.
func codeTask(r row, test string) (Task, error) {
	switch {
	case len(r.TaskID) == 0:
		return Task{}, errors.New("it has no task_id")
	case r.EntryPoint == "":
		return Task{}, errors.New("it has no entry_point")
	case strings.TrimSpace(test) == "":
		return Task{}, errors.New("it has no test")
	}
	return Task{ID: scalar(r.TaskID), Checks: []Check{{Kind: CheckTests, Text: test, Entry: r.EntryPoint}}}, nil
}

// hasClasses says whether tests are classes of unittest.
func hasClasses(test string) bool { return strings.Contains(test, "TestCase)") }

// humanEval is a task of HumanEval: prompt is the head of a function with its docstring, canonical_solution its body, and test defines check(candidate).
func humanEval(r row) (Task, error) {
	t, err := codeTask(r, scalar(r.Test))
	if err != nil {
		return t, err
	}
	if r.Prompt == "" {
		return t, errors.New("it has no prompt")
	}
	if !strings.Contains(t.Checks[0].Text, "check") {
		return t, errors.New("its test defines no check(candidate)")
	}
	t.Checks[0].Prelude = r.Prompt
	t.Prompt = "Complete the Python function " + r.EntryPoint + ":\n\n" + fenced(r.Prompt) + inSession
	t.Reference = solution(r.Prompt, r.Solution)
	return t, nil
}

// bigCodeBench is a task of BigCodeBench: instruct_prompt says in words what complete_prompt says as the head of a function, code_prompt is that head without its
// docstring, and test has classes of unittest. In its repository of annotations prompt is the complete one, and there is no other.
func bigCodeBench(r row) (Task, error) {
	t, err := codeTask(r, scalar(r.Test))
	if err != nil {
		return t, err
	}
	r.CompletePrompt = cmp.Or(r.CompletePrompt, r.Prompt)
	head := cmp.Or(r.CodePrompt, r.CompletePrompt)
	if head == "" && r.Solution != "" {
		return t, errors.New("it has neither code_prompt nor complete_prompt")
	}
	t.Checks[0].Unittest, t.Checks[0].Prelude = true, r.CompletePrompt
	t.Prompt = r.InstructPrompt
	if t.Prompt == "" {
		t.Prompt = "Complete the Python function " + r.EntryPoint + ":\n\n" + fenced(r.CompletePrompt)
	}
	t.Prompt += inSession
	t.Reference = solution(head, r.Solution)
	return t, nil
}

// odex is a task of ODEX: intent says what is wanted, prompt is the beginning of a function and suffix its end, test_start begins check(candidate), and each of
// test is a part of its body.
func odex(r row) (Task, error) {
	var parts []string
	if err := json.Unmarshal(r.Test, &parts); err != nil {
		return Task{}, errors.New("its test is not a list of texts")
	}
	start := ""
	if r.TestStart != nil {
		start = *r.TestStart
	}
	t, err := codeTask(r, start+strings.Join(parts, ""))
	if err != nil {
		return t, err
	}
	t.ID = "ODEX/" + t.ID
	head, _, _ := strings.Cut(r.Prompt, "\n")
	t.Prompt = strings.TrimSpace(r.Intent) + "\n\nWrite it as this Python function:\n\n" + fenced(head) + inSession
	t.Reference = solution(r.Prompt, r.Solution+r.Suffix)
	return t, nil
}

func solution(head, body string) string {
	if strings.TrimSpace(body) == "" {
		return ""
	}
	return head + body
}
