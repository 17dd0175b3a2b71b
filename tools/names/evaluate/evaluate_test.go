package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const contents = `bin/bash                                                shells/bash
usr/lib/python3/dist-packages/yaml/__init__.py          python/python3-yaml
usr/lib/python3/dist-packages/PyYAML-6.0.1.dist-info/METADATA python/python3-yaml
usr/lib/python3/dist-packages/two/__init__.py           python/python3-two
usr/lib/python3/dist-packages/two-1.0.egg-info/PKG-INFO python/python3-two
usr/lib/python3/dist-packages/three-1.0.egg-info        python/python3-two
usr/lib/python3/dist-packages/zope/interface/__init__.py python/python3-zope.interface,python/python3-zope.copy
usr/lib/python3/dist-packages/zope.interface-5.0.egg-info python/python3-zope.interface
`

func TestDebianTellsWhatItsPackagesProvide(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "Contents-all")
	if err := os.WriteFile(name, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := fromDebian([]string{name}, shared)
	if err != nil {
		t.Fatal(err)
	}
	want := []truth{{"pyyaml", []string{"yaml"}}, {"zope-interface", []string{"zope.interface"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(truth{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheHalvesDoNotOverlap(t *testing.T) {
	t.Parallel()
	var all []truth
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		all = append(all, truth{dist: string(c)})
	}
	dev, held := halves(all)
	if len(dev)+len(held) != len(all) || len(dev) < 5 || len(held) < 5 {
		t.Errorf("the halves have %d and %d of %d", len(dev), len(held), len(all))
	}
	again, _ := halves(all)
	if diff := cmp.Diff(dev, again, cmp.AllowUnexported(truth{})); diff != "" {
		t.Errorf("the halves change:\n%s", diff)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dist, module, want string }{
		{"pyyaml", "yaml", "right"}, {"opencv-python", "cv2", "right"}, {"jwt", "jwt", "wrong"}, {"google", "google", "none"},
	} {
		outcomes := judge([]truth{{c.dist, []string{c.module}}}, "3.13")
		if len(outcomes) != 1 || outcomes[0].verdict() != c.want {
			t.Errorf("%s for %s: %+v, want %s", c.module, c.dist, outcomes, c.want)
		}
	}
}
