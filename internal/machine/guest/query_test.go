package guest

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

// queryFor is a query for a name.
func queryFor(name string, kind byte) []byte {
	b := []byte{0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0, 0, kind, 0, 1)
}

func TestParseQuery(t *testing.T) {
	t.Parallel()
	q, err := parseQuery(queryFor("API.Example.com", typeA))
	if err != nil || q.name != "api.example.com" || q.kind != typeA || q.class != classInternet {
		t.Fatalf("%+v, %v", q, err)
	}
	want := append([]byte{0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, queryFor("API.Example.com", typeA)[headerSize:]...)
	want = append(want, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, answerTTL, 0, 4, 198, 18, 1, 0)
	if got := q.answer(0, namesFrom); !bytes.Equal(got, want) {
		t.Errorf("answered\n%x, want\n%x", got, want)
	}
	if got := q.answer(rcodeNameError, netip.Addr{}); len(got) != len(queryFor("API.Example.com", typeA)) || got[3]&15 != rcodeNameError {
		t.Errorf("a name that is not there: %x", got)
	}
	for _, name := range []string{"evil\x00.example.com", "a b.example.com", "exämple.com"} {
		if q, err := parseQuery(queryFor(name, typeA)); err != nil || q.name != "" {
			t.Errorf("%q is the name %q (%v)", name, q.name, err)
		}
	}
	whole := queryFor("a.b", typeA)
	for n := range len(whole) {
		if _, err := parseQuery(whole[:n]); err == nil {
			t.Errorf("%d bytes of %d are a query", n, len(whole))
		}
	}
	pointer := append([]byte{}, whole[:headerSize]...)
	if _, err := parseQuery(append(pointer, 0xc0, 12, 0, 1, 0, 1)); err == nil {
		t.Error("a name that leads to itself is read")
	}
}

// FuzzParseQuery wants no query of a program's to stop the guest, and each answer to belong to its query.
func FuzzParseQuery(f *testing.F) {
	f.Add(queryFor("example.com", typeA))
	f.Add(queryFor("", 28))
	f.Fuzz(func(t *testing.T, in []byte) {
		q, err := parseQuery(in)
		if err != nil {
			return
		}
		if out := q.answer(0, namesFrom); !bytes.Equal(out[:2], in[:2]) || !bytes.HasPrefix(in[headerSize:], q.question) {
			t.Errorf("%x is answered by %x", in, out)
		}
	})
}

// TestNamesHaveAddresses gives more names addresses than there can be at a time.
func TestNamesHaveAddresses(t *testing.T) {
	t.Parallel()
	n := &network{names: map[string]netip.Addr{}, byNumber: map[netip.Addr]string{}}
	first := n.numberOf("a.test")
	if n.numberOf("a.test") != first || n.nameOf(first) != "a.test" || n.nameOf(netip.MustParseAddr("8.8.8.8")) != "8.8.8.8" {
		t.Errorf("a.test is %s, %s is %s", n.numberOf("a.test"), first, n.nameOf(first))
	}
	given := map[netip.Addr]bool{}
	for i := range 3 * mostNames {
		given[n.numberOf(strings.Repeat("a", i%60+1)+"."+strings.Repeat("b", i/60%60+1)+"."+strings.Repeat("c", i/3600+1)+".test")] = true
	}
	if len(given) > mostNames || len(n.names) > mostNames || len(n.byNumber) > mostNames {
		t.Errorf("%d addresses were given, %d names and %d numbers are held", len(given), len(n.names), len(n.byNumber))
	}
	for a := range given {
		if !netip.MustParsePrefix("198.18.0.0/15").Contains(a) {
			t.Fatalf("%s leads somewhere", a)
		}
	}
}
