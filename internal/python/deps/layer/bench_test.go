package layer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/python/deps/layer"
)

// sized is a distribution with that many modules in folders of 50.
func sized(name string, modules int) distribution {
	d := dist(name)
	for i := range modules {
		d.files = append(d.files, file{name: fmt.Sprintf("%s/p%d/m%d.py", name, i/50, i), text: strings.Repeat("def f(x):\n    return x\n", 20) + fmt.Sprintf("n = %d\n", i)})
	}
	return d
}

// BenchmarkMake makes a layer of wheels that are there, by the number of modules; each has its bytecode beside it.
func BenchmarkMake(b *testing.B) {
	for _, n := range []int{100, 1500, 10000} {
		b.Run(fmt.Sprintf("modules=%d", n), func(b *testing.B) {
			x, s := newIndex(), open(b, b.TempDir(), layer.Limits{})
			c := closure(b, x.add(b, sized("spam", n)), x.add(b, dist("eggs", "eggs.py", "")))
			l := ensure(b, s, c, x)
			for b.Loop() {
				b.StopTimer()
				if err := os.RemoveAll(filepath.Join(s.Folder(), l.Name)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				ensure(b, s, c, x)
			}
			b.ReportMetric(float64(l.Files), "files")
		})
	}
}

// BenchmarkFind finds a layer of many distributions in a store that has just been opened.
func BenchmarkFind(b *testing.B) {
	x, dir := newIndex(), b.TempDir()
	var wheels []layer.Wheel
	for i := range 60 {
		wheels = append(wheels, x.add(b, sized(fmt.Sprintf("spam%d", i), 3)))
	}
	c := closure(b, wheels...)
	s := open(b, dir, layer.Limits{})
	ensure(b, s, c, x)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			if _, ok := s.Find(c); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open(b, dir, layer.Limits{})
		}
	})
}
