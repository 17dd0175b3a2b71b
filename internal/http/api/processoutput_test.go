package api_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cove/internal/http/api"
	"cove/internal/machine/process"
)

// TestOutputIsJSON reads events as package json does, also those that are read without it.
func TestOutputIsJSON(t *testing.T) {
	t.Parallel()
	for _, o := range []api.ProcessOutput{
		{Type: process.Stdout, Data: []byte{0, 1, 2, 255}}, {Type: process.Stderr, Data: bytes.Repeat([]byte{7}, 100_001)}, {Type: process.Stdout, Text: "a\",\"data\":\"AAAA\"}"}, {Type: process.Stdout, Text: "größe\n"},
		{Type: process.Ended, Exit: &api.ProcessExit{Code: 3}},
	} {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := api.ParseOutput(text)
		if diff := cmp.Diff(o, got); diff != "" || err != nil {
			t.Errorf("%.100s: %v\n%.500s", text, err, diff)
		}
		if len(o.Data) > 0 && !bytes.Equal(api.BinaryOutput(o.Type, o.Data), text) {
			t.Errorf("%.100s is written otherwise", text)
		}
	}
	for _, bad := range []string{"", "{", `{"type":"stdout","data":"***"}`, `{"type":"stdout","data":7}`} {
		if o, err := api.ParseOutput([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, o)
		}
	}
}
