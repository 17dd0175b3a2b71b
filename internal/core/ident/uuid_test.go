package ident_test

import (
	"strings"
	"testing"

	"cove/internal/core/ident"
)

func TestAnIDAsAUUID(t *testing.T) {
	t.Parallel()
	for range 1000 {
		id := ident.New(ident.Session)
		uuid := ident.UUID(id)
		if back, ok := ident.FromUUID(ident.Session, uuid); !ok || back != id || len(uuid) != 36 {
			t.Fatalf("%s became %s and that %s", id, uuid, back)
		}
	}
	uuid := ident.UUID(ident.New(ident.Session))
	for _, wrong := range []string{"", "x", strings.ReplaceAll(uuid, "-", ""), strings.ToUpper("0a" + uuid[2:]), uuid + "0", uuid[:35], "-" + uuid[1:]} {
		if id, ok := ident.FromUUID(ident.Session, wrong); ok {
			t.Errorf("%q became %s", wrong, id)
		}
	}
	if uuid := ident.UUID("ses_short"); uuid != "" {
		t.Errorf("no id became %s", uuid)
	}
}
