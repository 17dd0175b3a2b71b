package live

import (
	"fmt"
	"testing"

	"cove/internal/core/problem"
)

// TestNobodyTakesAllConnections: a session and a project are refused long before the server is full, and others go on.
func TestNobodyTakesAllConnections(t *testing.T) {
	t.Parallel()
	c := newSockets()
	c.most = mostSockets
	var leaves []func()
	fill := func(session, project string) (n int) {
		for ; ; n++ {
			leave, err := c.enter(session, project)
			if err != nil {
				if !problem.Has(err, problem.Overloaded) {
					t.Fatal(err)
				}
				return n
			}
			leaves = append(leaves, leave)
		}
	}
	if n := fill("ses_0", "prj_a"); n != sessionSockets {
		t.Errorf("one session: %d", n)
	}
	of := sessionSockets
	for i := range 10 {
		of += fill(fmt.Sprint("ses_", i+1), "prj_a")
	}
	if of != mostSockets/2 {
		t.Errorf("one project: %d", of)
	}
	if n := fill("ses_other", "prj_b"); n != sessionSockets {
		t.Errorf("another project: %d", n)
	}
	for _, leave := range leaves {
		leave()
	}
	if c.all != 0 || len(c.of) != 0 {
		t.Errorf("when all have left: %d, %v", c.all, c.of)
	}
}
