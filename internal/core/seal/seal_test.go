package seal_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"os"

	"cove/internal/core/problem"
	"cove/internal/core/seal"
)

func keys(t testing.TB, texts ...string) seal.Keys {
	t.Helper()
	k, err := seal.ParseKeys(strings.Join(texts, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sealer(t testing.TB) *seal.Sealer {
	t.Helper()
	k := keys(t, seal.NewKey())
	b, err := seal.NewRing(k).Open(k, "here")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantCode(t testing.TB, err error, code problem.Code) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func sealStream(t testing.TB, b *seal.Sealer, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := b.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	for rest := plain; len(rest) > 0; {
		n := min(len(rest), 40_000)
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestStreamsOfEveryLengthComeBack(t *testing.T) {
	t.Parallel()
	b := sealer(t)
	for _, size := range []int{0, 1, 65535, 65536, 65537, 131072, 131073, 1 << 20} {
		plain := make([]byte, size)
		_, _ = rand.Read(plain)
		sealed := sealStream(t, b, plain)
		if int64(len(sealed)) != b.Length(int64(size)) {
			t.Errorf("%d bytes become %d, and Length says %d", size, len(sealed), b.Length(int64(size)))
		}
		if size > 16 && bytes.Contains(sealed, plain[:16]) {
			t.Errorf("%d bytes are in the sealed stream as they are", size)
		}
		r, err := b.NewReader(bytes.NewReader(sealed), int64(len(sealed)), false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes came back as %d: %v", size, len(got), err)
		}
		if r.Size() != int64(size) {
			t.Errorf("the reader says %d bytes instead of %d", r.Size(), size)
		}
	}
}

func TestStreamsAreReadFromAnyPlace(t *testing.T) {
	t.Parallel()
	b := sealer(t)
	plain := make([]byte, 300_000)
	_, _ = rand.Read(plain)
	sealed := sealStream(t, b, plain)
	r, err := b.NewReader(bytes.NewReader(sealed), int64(len(sealed)), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 65_535, 65_536, 131_000, 299_990} {
		got := make([]byte, min(100, len(plain)-at))
		if n, err := r.ReadAt(got, int64(at)); n != len(got) || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(got, plain[at:at+len(got)]) {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
}

// What was changed, cut off, exchanged or is another sealer's is refused, and never read as something else.
func TestChangedStreamsAreRefused(t *testing.T) {
	t.Parallel()
	b := sealer(t)
	sealed := sealStream(t, b, make([]byte, 200_000))
	const chunk, head = 65536 + 16, 48
	changed := func(change func([]byte) []byte) []byte { return change(bytes.Clone(sealed)) }
	for name, text := range map[string][]byte{
		"a bit":           changed(func(s []byte) []byte { s[100_000] ^= 1; return s }),
		"the salt":        changed(func(s []byte) []byte { s[20] ^= 1; return s }),
		"the key":         changed(func(s []byte) []byte { s[13] ^= 1; return s }),
		"cut in a chunk":  sealed[:len(sealed)-5],
		"cut at a chunk":  sealed[:head+2*chunk],
		"only a head":     sealed[:head],
		"chunks in other": changed(func(s []byte) []byte { copy(s[head:], sealed[head+chunk:head+2*chunk]); return s }),
		"added":           append(bytes.Clone(sealed), sealed[head:head+chunk]...),
		"plain":           make([]byte, 5000),
		"nothing":         nil,
	} {
		r, err := b.NewReader(bytes.NewReader(text), int64(len(text)), false)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !problem.Has(err, problem.SealedDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := sealer(t).NewReader(bytes.NewReader(sealed), int64(len(sealed)), false)
	if err == nil {
		_, err = io.ReadAll(r)
	}
	wantCode(t, err, problem.SealedDamaged)
}

func TestValues(t *testing.T) {
	t.Parallel()
	b := sealer(t)
	one, two := b.SealText("code", "print(1)"), b.SealText("code", "print(1)")
	if one == two || strings.Contains(one, "print") {
		t.Errorf("%q and %q", one, two)
	}
	if got, err := b.OpenText("code", one); err != nil || got != "print(1)" {
		t.Errorf("%q, %v", got, err)
	}
	_, err := b.OpenText("answer", one)
	wantCode(t, err, problem.SealedDamaged)
	_, err = b.OpenText("code", "print(1)")
	wantCode(t, err, problem.SealedDamaged)
	_, err = b.OpenText("code", one[:len(one)-4])
	wantCode(t, err, problem.SealedDamaged)
	if x := b.SealFixed("name", "x"); x != b.SealFixed("name", "x") || x == b.SealFixed("name", "y") {
		t.Error("what is to be looked up differs, or does not")
	}
	if got, err := b.OpenText("name", b.SealFixed("name", "x")); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
	var off *seal.Sealer
	if off.SealText("code", "print(1)") != "print(1)" {
		t.Error("without a sealer something is sealed")
	}
}

func TestOperatorsKeysAreExchanged(t *testing.T) {
	t.Parallel()
	old, fresh := seal.NewKey(), seal.NewKey()
	ring := seal.NewRing(keys(t, old))
	b, err := ring.Open(keys(t, old), "here")
	if err != nil {
		t.Fatal(err)
	}
	sealed := b.SealText("code", "kept")
	_, err = ring.Open(keys(t, fresh), "here")
	wantCode(t, err, problem.EncryptionKeyMissing)
	if id := keys(t, old)[0].ID; !strings.Contains(err.Error(), id) || !strings.Contains(err.Error(), keys(t, fresh)[0].ID) {
		t.Errorf("the problem names neither the key that is needed nor that which is there: %v", err)
	}
	both := keys(t, "# the new one", fresh, "", old)
	next, changed, err := ring.Rewrap(both, "here")
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	read, err := seal.ParseRing(next.Text(), "here")
	if err != nil {
		t.Fatal(err)
	}
	read.Add(both)
	again, err := read.Open(keys(t, fresh), "here")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.OpenText("code", sealed); err != nil || got != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	later := again.SealText("code", "later")
	_, err = b.OpenText("code", later) // another data key
	wantCode(t, err, problem.SealedDamaged)
	if string(again.Sum("word", "x")) != string(b.Sum("word", "x")) {
		t.Error("a keyed hash changed with another data key")
	}
	if _, changed, _ = next.Rewrap(both, "here"); changed {
		t.Error("what is wrapped with the first key was wrapped anew")
	}
}

func TestBadKeysAndRings(t *testing.T) {
	t.Parallel()
	key := seal.NewKey()
	for _, text := range []string{"hunter2", key[:len(key)-3], strings.Replace(key, "cove", "cave", 1), key + "\nx"} {
		_, err := seal.ParseKeys(text)
		wantCode(t, err, problem.EncryptionKeyInvalid)
		if strings.Contains(err.Error(), key[25:40]) {
			t.Errorf("the problem has the key: %v", err)
		}
	}
	for _, text := range []string{"", "{}", `{"version":9,"keys":[{"number":1}]}`} {
		_, err := seal.ParseRing([]byte(text), "here")
		wantCode(t, err, problem.EncryptionRingDamaged)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	b, path := sealer(t), filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, sealStream(t, b, []byte("hello")), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, err := seal.IsSealed(path); err != nil || !is {
		t.Fatal(is, err)
	}
	r, err := b.OpenFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if got, err := io.ReadAll(r); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("as it is"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, err := b.OpenFile(path, true)
	if err != nil || plain.Sealed() {
		t.Fatal(err)
	}
	_ = plain.Close()
	_, err = b.OpenFile(path, false)
	wantCode(t, err, problem.SealedDamaged)
}

func BenchmarkStream(b *testing.B) {
	sealer := sealer(b)
	plain := make([]byte, 64<<20)
	b.Run("seal", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			w, err := sealer.NewWriter(io.Discard)
			if err != nil {
				b.Fatal(err)
			}
			_, _ = w.Write(plain)
			_ = w.Close()
		}
	})
	sealed := sealStream(b, sealer, plain)
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			r, err := sealer.NewReader(bytes.NewReader(sealed), int64(len(sealed)), false)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, r); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, size := range []int{100, 10_000} {
		b.Run(fmt.Sprint("value", size), func(b *testing.B) {
			text := strings.Repeat("x", size)
			for b.Loop() {
				if _, err := sealer.OpenText("code", sealer.SealText("code", text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
