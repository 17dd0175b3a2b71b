package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// needed are the system calls that gVisor makes to start a sandbox as an ordinary user, and that Docker's profile leaves to who has CAP_SYS_ADMIN or CAP_SYS_CHROOT: it makes namespaces,
// in which it is root, and an empty root file system. Each is here because no sandbox starts without it. None of them gives a process rights outside of its own user namespace.
func needed() []string {
	return []string{"clone", "mount", "umount2", "pivot_root", "chroot"}
}

// machines are the architectures of the image, with those whose programs their kernels run as well.
func machines() []string {
	return []string{"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"}
}

// rule is one of a profile: of Docker's, which has conditions, and of the ones that every container runtime and Kubernetes take, which have none.
type rule struct {
	Names    []string        `json:"names"`
	Action   string          `json:"action"`
	Errno    *uint           `json:"errnoRet,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Includes *condition      `json:"includes,omitempty"`
	Excludes *condition      `json:"excludes,omitempty"`
}

type condition struct {
	Caps   []string `json:"caps"`
	Arches []string `json:"arches"`
}

type profile struct {
	Default  string   `json:"defaultAction"`
	Errno    *uint    `json:"defaultErrnoRet,omitempty"`
	Machines []string `json:"architectures,omitempty"`
	Rules    []rule   `json:"syscalls"`
}

// writeProfile writes Docker's default profile, which is in the file at path, for a container without capabilities, with what is needed beside it.
func writeProfile(w io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var from profile
	if err := json.Unmarshal(text, &from); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	to := profile{Default: from.Default, Errno: from.Errno, Machines: machines(), Rules: []rule{{Names: needed(), Action: "SCMP_ACT_ALLOW"}}}
	for _, r := range from.Rules {
		if !r.holds() {
			continue
		}
		if r.Action == "SCMP_ACT_ALLOW" {
			r.Names = slices.DeleteFunc(r.Names, func(name string) bool { return slices.Contains(needed(), name) })
		}
		if r.Includes, r.Excludes = nil, nil; len(r.Names) > 0 {
			to.Rules = append(to.Rules, r)
		}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(to)
}

// holds says whether a rule is one for a container without capabilities on one of the image's architectures. The release of the kernel, which some rules name too, is always one that gVisor runs on.
func (r rule) holds() bool {
	ours := func(arch string) bool { return slices.Contains([]string{"amd64", "x32", "x86", "arm64", "arm"}, arch) }
	if in := r.Includes; in != nil && (len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.ContainsFunc(in.Arches, ours)) {
		return false
	}
	return r.Excludes == nil || !slices.ContainsFunc(r.Excludes.Arches, ours)
}
