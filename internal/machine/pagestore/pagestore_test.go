package pagestore_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"cove/internal/machine/pagestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file draws a file of pages that other files have too, of which the last need not be whole.
func file(t *rapid.T) []byte {
	var all []byte
	for _, kind := range rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "pages") {
		all = append(all, bytes.Repeat([]byte{kind % 24}, pagestore.Size)...)
	}
	if rapid.Bool().Draw(t, "cut") && len(all) > 100 {
		all = all[:len(all)-100]
	}
	return all
}

// Whatever is added, dropped and forgotten by a crash: each file that is kept is what was added, and the folder takes the room of the pages that differ.
func TestFilesAreWhatWasAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "pages")
		if err != nil {
			rt.Fatal(err)
		}
		files, lists := map[int][]byte{}, map[int]pagestore.List{}
		open := func() *pagestore.Store {
			s, err := pagestore.Open(dir, slices.Collect(maps.Values(lists))...)
			if err != nil {
				rt.Fatal(err)
			}
			return s
		}
		s := open()
		defer func() { _ = s.Close() }()
		for n := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"add", "add", "drop", "crash", "shrink"}).Draw(rt, "what") {
			case "add":
				content := file(rt)
				list, err := s.Add(t.Context(), bytes.NewReader(content))
				if err != nil {
					rt.Fatal(err)
				}
				files[n], lists[n] = content, list
			case "drop":
				for k, list := range lists {
					delete(files, k)
					delete(lists, k)
					s.Drop([]pagestore.List{list}, slices.Collect(maps.Values(lists)))
					break
				}
			case "crash": // after an addition that nobody recorded
				if _, err := s.Add(t.Context(), bytes.NewReader(file(rt))); err != nil {
					rt.Fatal(err)
				}
				_ = s.Close()
				s = open()
			case "shrink":
				if err := s.Shrink(); err != nil {
					rt.Fatal(err)
				}
			}
			kinds := map[string]bool{}
			for k, content := range files {
				var got bytes.Buffer
				if err := s.Copy(t.Context(), &got, lists[k], int64(len(content))); err != nil || !bytes.Equal(got.Bytes(), content) {
					rt.Fatalf("file %d: %v, %d bytes of %d", k, err, got.Len(), len(content))
				}
				for page := range slices.Chunk(content, pagestore.Size) {
					kinds[string(append(slices.Clone(page), make([]byte, pagestore.Size-len(page))...))] = true
				}
			}
			if least, room := int64(len(kinds))*pagestore.Size, s.Room(); room != least {
				rt.Fatalf("%d bytes are taken for %d", room, least)
			}
		}
	})
}

// TestShrink gives back what is free on the disk, at the end and in between.
func TestShrink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := pagestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var lists []pagestore.List
	for n := range byte(3) {
		var content []byte
		for page := range byte(64) {
			content = append(content, bytes.Repeat([]byte{n, page}, pagestore.Size/2)...)
		}
		list, err := s.Add(t.Context(), bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	s.Drop([]pagestore.List{lists[0], lists[2]}, lists[1:2])
	if err := s.Shrink(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "pages"))
	if err != nil || info.Size() != 128*pagestore.Size || s.Room() != 64*pagestore.Size {
		t.Errorf("%v, %d bytes long, %d used", err, info.Size(), s.Room())
	}
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	s, err := pagestore.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	list, err := s.Add(t.Context(), bytes.NewReader(make([]byte, 3*pagestore.Size)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Add(ctx, bytes.NewReader(make([]byte, pagestore.Size))); err == nil {
		t.Error("a file was added although that was given up")
	}
	if err := s.Copy(ctx, &bytes.Buffer{}, list, 3*pagestore.Size); err == nil {
		t.Error("a file was copied although that was given up")
	}
	if err := s.Copy(t.Context(), &bytes.Buffer{}, list, 4*pagestore.Size); err == nil {
		t.Error("more was read than there is")
	}
}
