package require_test

import (
	"fmt"
	"testing"

	"cove/internal/python/deps/require"
)

// Each group's versions are equal, and groups ascend.
var ascending = [][]string{
	{""},
	{"2004d"},
	{"not a version"},
	{"0.dev1", "0.0.dev1", "0dev1"},
	{"0", "0.0", "v0"},
	{"1.dev0", "1.dev", "1-dev"},
	{"1a1.dev1"},
	{"1a1", "1.alpha1", "1.0-a-1"},
	{"1a2"},
	{"1a12.dev3"},
	{"1a12", "1.0alpha12"},
	{"1b1", "1_beta.1"},
	{"1rc1", "1c1", "1.0-pre1", "1preview1", "1.0RC1"},
	{"1", "1.0", "1.0.0", " 1.0 "},
	{"1+abc", "1.0+ABC"},
	{"1+abc.5", "1+abc-5", "1.0+ABC_5"},
	{"1+abc.7"},
	{"1+5"},
	{"1+5.a"},
	{"1+5.1"},
	{"1.post0.dev1"},
	{"1.post0", "1.post", "1-0", "1.0-r0", "1rev"},
	{"1.post1", "1-1", "1.0.0.post1"},
	{"1.0.1.dev2"},
	{"1.0.1"},
	{"1.2", "1.02"},
	{"1.10"},
	{"2024.11.20"},
	{"1!0.1", "1!0.1.0"},
	{"2!0"},
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for i, group := range ascending {
		for j, other := range ascending {
			for _, a := range group {
				for _, b := range other {
					want := 0
					if i < j {
						want = -1
					} else if i > j {
						want = 1
					}
					if got := require.Compare(a, b); got != want {
						t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		specifier string
		allowed   []string
		refused   []string
	}{
		{"", []string{"1", "1.0.dev1", "not a version", ""}, nil},
		{"==1.2", []string{"1.2", "1.2.0", "1.2+cu118", "v1.2"}, []string{"1.2.1", "1.2.post1", "1.2rc1", "1!1.2", "not a version"}},
		{"==1.2+cu118", []string{"1.2+cu118", "1.2.0+CU118"}, []string{"1.2", "1.2+cu117"}},
		{"==1.2.*", []string{"1.2", "1.2.9", "1.2.0.post1", "1.2+local", "1.2a1", "1.2.dev1"}, []string{"1.20", "1.3", "1", "2!1.2.1"}},
		{"==1.2.0.*", []string{"1.2", "1.2.0.1", "1.2rc1"}, []string{"1.2.1"}},
		{"==1.*", []string{"1", "1.0", "1.99.1"}, []string{"2", "0.1", "10.1"}},
		{"==1!2.*", []string{"1!2.3"}, []string{"2.3"}},
		{"!=1.2.*", []string{"1.3", "1.20"}, []string{"1.2", "1.2.5"}},
		{"!=1.2", []string{"1.2.1", "1.2.post1"}, []string{"1.2", "1.2.0", "1.2+x"}},
		{"~=2.2", []string{"2.2", "2.2.post1", "2.9", "2.10.1"}, []string{"2.1", "3.0", "2.2rc1", "3"}},
		{"~=1.4.5", []string{"1.4.5", "1.4.10", "1.4.5+local"}, []string{"1.5", "1.4.4", "1.4.5a1"}},
		{"~=2.2.post3", []string{"2.2.post3", "2.2.post4", "2.3"}, []string{"2.2", "2.2.post2", "3"}},
		{"~=2.2a1", []string{"2.2a1", "2.2", "2.3", "2.9"}, []string{"2.1", "3", "2.2.dev1"}},
		{"~=1!2.2", []string{"1!2.3"}, []string{"2.3", "1!3"}},
		{">=1.2", []string{"1.2", "1.2+x", "1.3a1", "1.2.post1"}, []string{"1.2rc1", "1.1", "1.2.dev0"}},
		{"<=1.2", []string{"1.2", "1.2+x", "1.2rc1"}, []string{"1.2.post1", "1.2.1"}},
		{"<3.1", []string{"3.0", "3.0.dev0", "3.0.9rc1"}, []string{"3.1", "3.1.dev0", "3.1rc1", "3.1.0a1", "3.1+x"}},
		{"<3.1.post1", []string{"3.1", "3.1rc1", "3.1.post0"}, []string{"3.1.post1", "3.1.post1.dev0"}},
		{"<3.1rc2", []string{"3.1rc1", "3.1.dev0", "3.0"}, []string{"3.1rc2", "3.1"}},
		{">3.1", []string{"3.1.1", "3.2.dev1", "3.2.post1"}, []string{"3.1", "3.1.post1", "3.1+x", "3.1.0.post0", "3.1rc1"}},
		{">3.1.post1", []string{"3.1.post2", "3.1.1"}, []string{"3.1.post1", "3.1"}},
		{">=1,<2,!=1.5", []string{"1", "1.4", "1.5.1"}, []string{"1.5", "2", "2.0a1", "0.9"}},
		{"===1.0", []string{"1.0"}, []string{"1", "1.0.0", "1.0+x"}},
		{"===1.0-RC1", []string{"1.0-rc1"}, []string{"1.0"}},
		{"nonsense", nil, []string{"1", ""}},
	}
	for _, test := range tests {
		r := require.Requirement{Name: "x", Specifier: test.specifier}
		for _, version := range test.allowed {
			if !r.Allows(version) {
				t.Errorf("%q does not allow %q", test.specifier, version)
			}
		}
		for _, version := range test.refused {
			if r.Allows(version) {
				t.Errorf("%q allows %q", test.specifier, version)
			}
		}
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		specifier, want string
		ok              bool
	}{
		{"", "", false},
		{"==1.2", "1.2", true},
		{"===1.2-legacy", "1.2-legacy", true},
		{"==1.2+cu118", "1.2+cu118", true},
		{"==1.2.*", "", false},
		{"~=1.2", "", false},
		{">=1,==1.5", "1.5", true},
		{">=2,==1.5", "", false},
		{"!=1.5", "", false},
		{"nonsense", "", false},
	} {
		got, ok := require.Requirement{Name: "x", Specifier: test.specifier}.Pin()
		if got != test.want || ok != test.ok {
			t.Errorf("Pin of %q = %q, %v, want %q, %v", test.specifier, got, ok, test.want, test.ok)
		}
	}
}

func ExampleRequirement_Allows() {
	r, _ := require.Parse("polars>=1,<2")
	fmt.Println(r.Allows("1.9.0"), r.Allows("2.0.0"))
	// Output: true false
}
