package loop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cove/internal/llm/loop"
	"cove/internal/llm/model"
)

// deltas asks with a call whose arguments come in the given pieces and returns the code as it was told while it came.
func deltas(t *testing.T, pieces []string) string {
	t.Helper()
	first := says{}
	for _, p := range pieces {
		first.parts = append(first.parts, model.CallDelta{ID: "1", Name: "python", Arguments: p})
	}
	whole := strings.Join(pieces, "")
	first.parts = append(first.parts, model.Finish{Reason: model.FinishCalls, Calls: []model.ToolCall{{ID: "1", Name: "python", Arguments: whole}}})
	m := &scripted{t: t, can: tools(), script: []says{first, text("Ok.")}}
	got := ask(t, newConversation(m, &session{}, loop.DefaultLimits()), "q")
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.code[1]
}

// wanted is what a full parse finds.
func wanted(t *testing.T, arguments string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(arguments), &value); err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	if object, ok := value.(map[string]any); ok {
		value = object["code"]
	}
	code, _ := value.(string)
	return code
}

func TestCodeStreamsInEverySplit(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{
		`{"code":"print('a\n\t\"\\\/\b\f\r')"}`,
		`{ "x" : {"code":"no","y":["code"]}, "z":["a",{"code":"no"}], "code" : "yes \u00e9\ud83d\ude00é😀中" , "n":-1.5e3 }`,
		`{"code":"\ud83d"}`, `{"code":"\ud83dx\ude00\ud83d\ud83d\ude00\u0041\ud83d\n"}`,
		`{"co\u0064e":"escaped key"}`, `{"a":"code","b":"code","code":"c"}`, `{"code":["no"],"x":"code"}`, `{"code":{"code":"no"}}`,
		`"alone 😀"`, `{"code":""}`, `{}`, `{"code":null,"\ud83dcode":"x"}`,
	} {
		want := wanted(t, arguments)
		for at := range len(arguments) + 1 {
			if got := deltas(t, []string{arguments[:at], arguments[at:]}); got != want {
				t.Errorf("%s split at %d gives %q, want %q", arguments, at, got, want)
			}
		}
		var bytes []string
		for n := range len(arguments) {
			bytes = append(bytes, arguments[n:n+1])
		}
		if got := deltas(t, bytes); got != want {
			t.Errorf("%s byte by byte gives %q, want %q", arguments, got, want)
		}
	}
}

func TestCodeStreamsLikeAParse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		arguments := randomArguments(r)
		var pieces []string
		for rest := arguments; rest != ""; {
			n := 1 + r.IntN(min(len(rest), 9))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got, want := deltas(t, pieces), wanted(t, arguments); got != want {
			t.Fatalf("seed %d: %s in %q gives %q, want %q", seed, arguments, pieces, got, want)
		}
	}
}

// randomArguments returns an object with a code field somewhere among others.
func randomArguments(r *rand.Rand) string {
	var fields []string
	for n := range r.IntN(4) {
		fields = append(fields, fmt.Sprintf(`"k%d"%s:%s%s`, n, space(r), space(r), randomValue(r, 3)))
	}
	at := r.IntN(len(fields) + 1)
	fields = append(fields[:at], append([]string{space(r) + `"code":` + randomString(r)}, fields[at:]...)...)
	return space(r) + "{" + strings.Join(fields, space(r)+","+space(r)) + "}" + space(r)
}

func randomValue(r *rand.Rand, depth int) string {
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		return fmt.Sprintf("[%s,%s]", randomValue(r, depth-1), randomValue(r, depth-1))
	case n == 1 && depth > 0:
		return fmt.Sprintf(`{"code":%s,%s:%s}`, randomValue(r, depth-1), randomString(r), randomValue(r, depth-1))
	case n == 2:
		return []string{"true", "false", "null", "-1.5e-3", "0"}[r.IntN(5)]
	default:
		return randomString(r)
	}
}

func randomString(r *rand.Rand) string {
	atoms := []string{"a", " ", "code", `\n`, `\\`, `\"`, `\/`, `\t`, "é", "中", "😀", `\u0041`, `\u4e2d`, `\ud83d`, `\ude00`, `\ud83d\ude00`, "{", "}", "[", ":", ",", `\u0000`, `\uFFFD`, "\xff", "\xe4\xb8"}
	var b strings.Builder
	b.WriteByte('"')
	for range r.IntN(12) {
		b.WriteString(atoms[r.IntN(len(atoms))])
	}
	b.WriteByte('"')
	return b.String()
}

func space(r *rand.Rand) string { return []string{"", "", " ", "\n"}[r.IntN(4)] }
