package ports

import (
	"fmt"
	"testing"

	"cove/internal/problem"
)

// TestNobodyTakesAllPorts: a session and a project are refused long before the server is full, and others go on.
func TestNobodyTakesAllPorts(t *testing.T) {
	t.Parallel()
	f := &front{busy: map[string]int{}}
	var leaves []func()
	fill := func(session, project string) (n int) {
		for ; ; n++ {
			leave, err := f.enter(session, project)
			if err != nil {
				if !problem.Has(err, problem.Overloaded) {
					t.Fatal(err)
				}
				return n
			}
			leaves = append(leaves, leave)
		}
	}
	if n := fill("ses_0", "prj_a"); n != sessionAtOnce {
		t.Errorf("one session: %d", n)
	}
	of := sessionAtOnce
	for i := range 10 {
		of += fill(fmt.Sprint("ses_", i+1), "prj_a")
	}
	if of != projectAtOnce {
		t.Errorf("one project: %d", of)
	}
	if n := fill("ses_other", "prj_b"); n != sessionAtOnce {
		t.Errorf("another project: %d", n)
	}
	for _, leave := range leaves {
		leave()
	}
	if f.all != 0 || len(f.busy) != 0 {
		t.Errorf("when all have left: %d, %v", f.all, f.busy)
	}
}
