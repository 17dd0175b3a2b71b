package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cove/internal/llm/model/modeltest"
)

// toolCalls is how many calls of the tool a task takes.
const toolCalls = 20

const (
	toolName = "lookup"
	toolText = "Looks up the record that has a key."
)

// toolRecord is what the tool answers, about 2,000 bytes of JSON of which a task needs the value.
type toolRecord struct {
	Key     int         `json:"key"`
	Value   int         `json:"value"`
	History []toolEntry `json:"history"`
}

type toolEntry struct {
	At     string `json:"at"`
	By     string `json:"by"`
	Change string `json:"change"`
}

// toolRequest is what the tool is asked.
type toolRequest struct {
	Key int `json:"key"`
}

const (
	toolParameters = `{"type":"object","properties":{"key":{"type":"integer"}},"required":["key"],"additionalProperties":false}`
	toolReturns    = `{"type":"object","properties":{"key":{"type":"integer"},"value":{"type":"integer"}},"required":["key","value"]}`
)

// recordOf is the record that has a key. Its value is another key, too.
func recordOf(key int) toolRecord {
	r := toolRecord{Key: key, Value: (key*7919 + 104_729) % 1_000_003}
	for day := range 22 {
		r.History = append(r.History, toolEntry{At: fmt.Sprintf("2026-03-%02dT09:%02d:00Z", day+1, key%60), By: fmt.Sprintf("user-%d", r.Value%97), Change: "price and stock"})
	}
	return r
}

// perform does a call that a client is asked to do, and returns its result as text.
func perform(arguments string) (string, error) {
	var asked toolRequest
	if err := json.Unmarshal([]byte(arguments), &asked); err != nil {
		return "", fmt.Errorf("read the arguments %.100q: %w", arguments, err)
	}
	text, err := json.Marshal(recordOf(asked.Key))
	return string(text), err
}

// workload is a task: its words, and how the scripted model solves it.
type workload struct {
	id, about string
	prompt    string
	keys      []int  // that are known at the start
	program   string // with %[1]s for the function, %[2]s for the one that is awaited
}

func workloads() []workload {
	var known []int
	for key := range toolCalls {
		known = append(known, key+1)
	}
	return []workload{
		{id: "dependent", about: "The argument of each call is a number from the 2,000 bytes that the one before brought; a program loops.",
			prompt: fmt.Sprintf("Look up the record with the key 17, then the one whose key is its value, and so on, %d in all. Answer with the value of the last one alone.", toolCalls),
			keys:   []int{17},
			program: fmt.Sprintf("import tools\nkey = 17\nfor _ in range(%d):\n", toolCalls) +
				"    key = %[1]s(key=key)[\"value\"]\nprint(key)"},
		{id: "independent", about: "The sum of a number from each of 20 results of 2,000 bytes; the model makes all calls in one answer, a program in asyncio.gather.",
			prompt: fmt.Sprintf("Look up the records with the keys 1 to %d. Answer with the sum of their values alone.", toolCalls),
			keys:   known,
			program: fmt.Sprintf("import asyncio, tools\nkeys = range(1, %d)\n", toolCalls+1) +
				"records = await asyncio.gather(*[%[2]s(key=key) for key in keys])\nprint(sum(record[\"value\"] for record in records))"},
	}
}

// want is the right answer.
func (w workload) want() string {
	values := []int{}
	for _, key := range w.keys {
		values = append(values, recordOf(key).Value)
	}
	for len(values) < toolCalls {
		values = append(values, recordOf(values[len(values)-1]).Value)
	}
	return w.answer(values)
}

// answer is what 20 values amount to.
func (w workload) answer(values []int) string {
	sum := values[len(values)-1]
	if len(w.keys) > 1 {
		sum = 0
		for _, v := range values {
			sum += v
		}
	}
	return strconv.Itoa(sum)
}

// reply is what the scripted model says to a request. All that it knows is in the request: it calls the tool where that is offered to it, and
// writes a program where it is told of a function for code.
func (w workload) reply(r modeltest.Request) modeltest.Turn {
	var results []string
	for _, m := range r.Messages() {
		if m["role"] == "tool" {
			results = append(results, modeltest.Request{Body: map[string]any{"messages": []any{m}}}.Text())
		}
	}
	if !slices.Contains(r.Tools(), toolName) {
		return w.code(r, results)
	}
	var values []int
	for _, text := range results {
		var found toolRecord
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return modeltest.Say(fmt.Sprintf("The result %.100q is no record: %v", text, err))
		}
		values = append(values, found.Value)
	}
	switch {
	case len(values) >= toolCalls:
		return modeltest.Say(w.answer(values))
	case len(values) == 0:
		return calling(0, w.keys...)
	}
	return calling(len(values), values[len(values)-1])
}

// code is reply where the model has an interpreter whose code may call the tool.
func (w workload) code(r modeltest.Request, results []string) modeltest.Turn {
	if len(results) > 0 {
		return modeltest.Say(strings.TrimSpace(results[len(results)-1]))
	}
	name := toolName
	if told := toolServer + "_" + toolName; strings.Contains(r.Text(), told+"(") {
		name = told
	}
	return modeltest.Run(strings.NewReplacer("%[1]s", "tools."+name, "%[2]s", "tools.aio."+name).Replace(w.program))
}

// calling is a call of the tool for each key, after so many earlier ones.
func calling(earlier int, keys ...int) (t modeltest.Turn) {
	for i, key := range keys {
		t.Calls = append(t.Calls, modeltest.Call{ID: fmt.Sprintf("call_%d", earlier+i+1), Name: toolName, Arguments: fmt.Sprintf(`{"key":%d}`, key)})
	}
	return t
}
