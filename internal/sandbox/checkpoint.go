package sandbox

import (
	"context"
	"strings"

	"cove/internal/problem"
)

// Saver is an Engine whose sandboxes can be saved to files and started from them. Not every engine is one.
type Saver interface {
	Engine
	// Fingerprint names everything besides a Spec and a guest that a checkpoint depends on: NAME-RELEASE-PROCESSOR-LIBRARIES, of which the last
	// three are digests of the runtime's release with how we set it up, of the processor's features, and of the system's libraries. A checkpoint made under another
	// fingerprint must not be restored. It says nothing of the build of cove, which may change.
	Fingerprint() (string, error)
	// Runtime names the runtime's release for people, such as "gVisor v0.0.0-20260905035102-160fafc42237".
	Runtime() (string, error)
	// Build identifies the executable with all that is in it.
	Build() (string, error)
	// Prepare starts a sandbox up to the point where the checkpoint spec.Image can be loaded into it, which is the slower half of a
	// restore.
	Prepare(ctx context.Context, spec Spec) (Prepared, error)
}

// SaverOf returns an engine as one that can save, or a problem with code "engine_cannot_save".
func SaverOf(e Engine) (Saver, error) {
	if saver, ok := e.(Saver); ok {
		return saver, nil
	}
	return nil, problem.New(problem.EngineCannotSave, "the engine "+e.Name()+" cannot save its sandboxes").
		WithHint("use --engine gvisor")
}

// ReleaseOf returns the part of a fingerprint that says which program can restore a checkpoint, wherever that runs.
func ReleaseOf(fingerprint string) string {
	parts := strings.SplitN(fingerprint, "-", 3)
	return strings.Join(parts[:min(2, len(parts))], "-")
}

// Prepared is a sandbox that waits for its contents.
type Prepared interface {
	// Restore loads the checkpoint in the folder dir, which is Spec.Image or one of a sandbox with the same guest, and returns once the guest has connected. Memory may still be
	// loading then: dir's files must not be changed while the sandbox lives, but may be unlinked. The spec given to
	// Prepare must have the mounts and the limits of the checkpointed one, except for Memory and CPUs.
	// After an error the Prepared is of no further use and has to be stopped.
	Restore(ctx context.Context, dir string) (Sandbox, error)
	// Stop frees all that the sandbox holds, unless Restore has handed it over.
	Stop(ctx context.Context) error
}

// Checkpointer is what the sandboxes of a Saver are besides.
type Checkpointer interface {
	Sandbox
	// Checkpoint saves the sandbox to files in dir, an empty folder. The caller closes the stream from Dial before. With keep
	// the sandbox goes on afterwards, and Dial returns the guest's next connection; without, it is gone, as after Stop.
	// When it fails, also for want of room (problem "disk_full") or because ctx ended, the sandbox goes on if it can, and dir is empty again.
	Checkpoint(ctx context.Context, dir string, keep bool) error
}
