package interpreter

import (
	"testing"

	"cove/internal/kernel"
)

func TestRecordTold(t *testing.T) {
	t.Parallel()
	r := newRecord(0, false)
	r.add(kernel.Result{Data: kernel.Bundle{"text/plain": "for people"}, Told: "for a model"})
	r.add(kernel.Display{Data: kernel.Bundle{"text/plain": "for both"}})
	if got := r.printed(); got != "for a model\nfor both" {
		t.Errorf("the model gets %q", got)
	}
}
