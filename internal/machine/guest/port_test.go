package guest

import (
	"slices"
	"testing"

	"cove/internal/machine/wire"
)

func TestListening(t *testing.T) {
	t.Parallel()
	table := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 7 1 0 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 9 1 0 100 0 0 10 0
   3: zz:1F90 00000000:0000 0A
   4: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1
`
	want := []wire.PortInfo{{Port: 8080, Address: "127.0.0.1"}, {Port: 80, Address: "0.0.0.0"}, {Port: 3000, Address: "::1"}}
	if got := listening(table); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
