package filters

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

// program is a program of one user, "sentry" or "gofer".
type program struct {
	user string
	precompiledseccomp.Program
}

// decode reads a file of programs: the version of gVisor that compiled them, and then the programs, one after the
// other. All numbers are uint32, little-endian; a text is its length and its bytes. A program is its user, its name,
// the number of its variables, for each of these the name, the number of places and the places in the code, and then
// the length of the code and the code, in words of 32 bits. What follows a damaged place is left out.
func decode(data string) []program {
	r := reader{rest: data}
	_ = r.text()
	var out []program
	for len(r.rest) > 0 {
		p := program{user: r.text()}
		p.Name = r.text()
		p.VarOffsets = map[string][]int{}
		for range r.number() {
			name := r.text()
			var places []int
			for _, n := range r.numbers() {
				places = append(places, int(n))
			}
			if r.damaged {
				break
			}
			p.VarOffsets[name] = places
		}
		p.Bytecode32 = r.numbers()
		if r.damaged {
			break
		}
		out = append(out, p)
	}
	return out
}

type reader struct {
	rest    string
	damaged bool
}

func (r *reader) take(n uint64) string {
	if r.damaged || n > uint64(len(r.rest)) {
		r.damaged = true
		return ""
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) number() uint32 {
	if s := r.take(4); !r.damaged {
		return word(s)
	}
	return 0
}

func (r *reader) text() string { return r.take(uint64(r.number())) }

func (r *reader) numbers() []uint32 {
	s := r.take(4 * uint64(r.number()))
	out := make([]uint32, len(s)/4)
	for i := range out {
		out[i] = word(s[4*i:])
	}
	return out
}

func word(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}
