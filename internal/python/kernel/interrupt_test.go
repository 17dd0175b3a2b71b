package kernel_test

import (
	"testing"
	"time"

	"cove/internal/python/kernel"
)

// TestFloodAfterDeath ends a kernel whose children go on to send messages in its name.
func TestFloodAfterDeath(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	const flood = `import os, struct
message = b'{"type":"tomorrow"}'
frames = 1000 * (struct.pack(">IB", len(message), 1) + message)
for _ in range(4):
    if os.fork() == 0:
        while True:
            os.write(1000, frames)
os._exit(3)`
	for ev, err := range k.Execute(t.Context(), kernel.Request{Code: flood, Timeout: time.Minute}) {
		if done, ok := ev.(kernel.Done); err != nil || ok && (done.Outcome != kernel.OutcomeDied || done.ExitCode != 3) {
			t.Errorf("ended as %+v, %v", ev, err)
		}
	}
}

// TestLateInterrupt interrupts code at about the moment at which it ends by itself: what is run next is not hit.
func TestLateInterrupt(t *testing.T) {
	t.Parallel()
	_, _, k := begin(t)
	for i := range 300 {
		req := kernel.Request{Code: "pass", Timeout: 200*time.Microsecond + time.Duration(i%30)*100*time.Microsecond}
		for ev, err := range k.Execute(t.Context(), req) {
			if done, ok := ev.(kernel.Done); err != nil || ok && done.Outcome != kernel.OutcomeOK && done.Outcome != kernel.OutcomeTimeout {
				t.Fatalf("%+v, %v", ev, err)
			}
		}
		run(t, k, "sum(range(1000))")
	}
}
