package loop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/llm/model"
)

// analysis is a conversation of so many turns: each asks, runs one of five programs, whose results a real kernel told (the third fails and is repaired), and answers.
func analysis(t *testing.T, turns int) []model.Message {
	t.Helper()
	said := func(role model.Role, content ...model.Content) model.Message {
		return model.Message{Role: role, Content: content}
	}
	files, err := filepath.Glob("testdata/past/*.txt")
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	const listing = "\n\nFiles in the working directory:\n\n- sales.csv (58.2 KB), first lines:\n  ```\n  date,region,product,units,price\n  2024-01-01,west,coffee,88,7.86\n  ```\n"
	const variables = "\n\nVariables in the session:\nmonthly: DataFrame 120×5, date, region, sum, mean, count\nsales: DataFrame 1200×6, date, region, product, units, price, revenue\n"
	var out []model.Message
	for n := range turns {
		text, err := os.ReadFile(files[n%5])
		if err != nil {
			t.Fatal(err)
		}
		code, result, _ := strings.Cut(strings.TrimPrefix(string(text), "```python\n"), "\n```\n")
		arguments, err := json.Marshal(map[string]string{"code": code})
		if err != nil {
			t.Fatal(err)
		}
		below := variables
		if n == 0 {
			below = listing
		}
		failed := strings.HasPrefix(result, "Traceback")
		id := fmt.Sprintf("call_%d", n)
		out = append(out, said(model.RoleUser, model.Text{Text: fmt.Sprintf("Question %d: how did the regions do, and what changed?", n+1) + below}),
			said(model.RoleAssistant, model.ToolCall{ID: id, Name: "python", Arguments: string(arguments)}),
			said(model.RoleTool, model.ToolResult{CallID: id, Text: result, IsError: failed}))
		if failed {
			mended := strings.ReplaceAll(string(arguments), "regoin", "region")
			out = append(out, said(model.RoleAssistant, model.ToolCall{ID: id + "b", Name: "python", Arguments: mended}),
				said(model.RoleTool, model.ToolResult{CallID: id + "b", Text: "region\nnorth    161291.67\nsouth    150944.41\nwest     173481.40\nName: revenue, dtype: float64"}))
		}
		out = append(out, said(model.RoleAssistant, model.Text{Text: fmt.Sprintf("Answer %d: the west leads with 173,481, the north follows with 161,292, and the south is last.", n+1)}))
	}
	return out
}

func characters(messages []model.Message) int { return costs([][]model.Message{messages}) }

// TestPastFits compares what a model gets of earlier turns with all that was said; tokens are estimated as a quarter of the characters.
func TestPastFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns int
		room  int
		most  float64 // of the plain way
	}{{5, historyBudget, 0.6}, {20, historyBudget, 0.55}, {100, historyBudget, 0.55}, {100, budget(32_000), 0.4}, {100, budget(8_000), 0.1}} {
		plain := analysis(t, c.turns)
		got := past(plain, c.room)
		share := float64(characters(got)) / float64(characters(plain))
		t.Logf("%3d turns, room for %6d characters: %6d tokens, %6d the plain way, %.2f", c.turns, c.room, characters(got)/4, characters(plain)/4, share)
		if share > c.most || characters(got) > c.room {
			t.Errorf("%d turns take %d characters, %.2f of the plain way", c.turns, characters(got), share)
		}
		all := fmt.Sprint(got)
		if !strings.Contains(all, fmt.Sprintf("Answer %d:", c.turns)) || !strings.Contains(all, fmt.Sprintf("Question %d:", c.turns)) {
			t.Errorf("of %d turns the last one is not told", c.turns)
		}
		last, whole := turnsOf(got), turnsOf(plain)
		if a, b := fmt.Sprint(last[len(last)-1]), fmt.Sprint(whole[len(whole)-1]); a != b {
			t.Errorf("of %d turns the last one is told as %s, not %s", c.turns, a, b)
		}
	}
}

// TestPastStays has what is sent of a conversation begin as it did a turn before, but for the turns that are told in another way, so that providers need not read it again.
func TestPastStays(t *testing.T) {
	t.Parallel()
	for turns := 3; turns < 40; turns++ {
		before, after := turnsOf(past(analysis(t, turns), historyBudget)), turnsOf(past(analysis(t, turns+1), historyBudget))
		for n := range turns - 1 {
			if fmt.Sprint(before[n]) != fmt.Sprint(after[n]) {
				t.Fatalf("turn %d of %d was sent as %v, and is as %v a turn later", n+1, turns, before[n], after[n])
			}
		}
	}
}

func TestPastWithoutImages(t *testing.T) {
	t.Parallel()
	image := model.Image{MIME: "image/png", Data: []byte("x")}
	messages := analysis(t, 3)
	messages[0].Content = append(messages[0].Content, image)
	messages[2].Content[0] = model.ToolResult{CallID: "call_0", Text: "[figure 1 shown to the user]", Images: []model.Image{image}}
	if got := fmt.Sprint(past(messages, historyBudget)[:4]); strings.Contains(got, "image/png") || !strings.Contains(got, pastImage) {
		t.Errorf("images of the first turn are sent: %s", got)
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()
	turns := turnsOf(past(analysis(t, 6), historyBudget))
	first, third, fourth := fmt.Sprint(turns[0]), fmt.Sprint(turns[2]), fmt.Sprint(turns[3])
	for _, want := range []string{"[DataFrame: 1200 rows × 6 columns]\n,date,region,product,units,price,revenue\n0,2024-01-01", "\n…\n[dtypes: ", "date,region,product,units,price\n  2024-01-01"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first turn is sent without %q: %s", want, first)
		}
	}
	if strings.Contains(first, "1199,2027-04-14") {
		t.Errorf("the first turn is sent as %s", first)
	}
	if strings.Contains(third, "KeyError") || strings.Contains(third, "regoin") || !strings.Contains(third, "161291.67") || !strings.Contains(third, pastRepaired) {
		t.Errorf("the turn with a repair is sent as %s", third)
	}
	if !strings.Contains(fourth, "[figure 1 shown to the user]") || strings.Contains(fourth, "some of them") {
		t.Errorf("the turn with a figure is sent as %s", fourth)
	}
	for n, turn := range turns {
		if told := strings.Contains(fmt.Sprint(turn), variablesHead); told != (n == 5) {
			t.Errorf("turn %d tells of variables: %v", n+1, told)
		}
	}
}

// TestPastOfOddTurns loses nothing that was said where a conversation is none of ours.
func TestPastOfOddTurns(t *testing.T) {
	t.Parallel()
	said := func(role model.Role, text string) model.Message {
		return model.Message{Role: role, Content: []model.Content{model.Text{Text: text}}}
	}
	for name, messages := range map[string][]model.Message{
		"none":               nil,
		"the model first":    {said(model.RoleAssistant, "Hello."), said(model.RoleUser, "a"), said(model.RoleAssistant, "b"), said(model.RoleUser, "c")},
		"results alone":      {{Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "x", Text: "y"}}}, said(model.RoleUser, "a"), said(model.RoleUser, "b")},
		"fenced":             {said(model.RoleUser, "a"), said(model.RoleAssistant, "```python\n1\n```"), said(model.RoleUser, resultHead+"```\n1\n```"), said(model.RoleAssistant, "b"), said(model.RoleUser, "c")},
		"calls of functions": {said(model.RoleUser, "a"), {Role: model.RoleAssistant, Content: []model.Content{model.ToolCall{ID: "1", Name: "weather", Arguments: "{}"}}}, {Role: model.RoleTool, Content: []model.Content{model.ToolResult{CallID: "1", Text: "rain", IsError: true}}}, said(model.RoleUser, "c")},
	} {
		if got := fmt.Sprint(past(messages, historyBudget)); got != fmt.Sprint(append([]model.Message{}, messages...)) {
			t.Errorf("%s: %s is sent as %s", name, fmt.Sprint(messages), got)
		}
		_ = past(messages, 0)
	}
}
