package sandbox

import (
	"context"
	"io"
	"strings"

	"cove/internal/core/problem"
)

// Checkpoint is what an engine has written of a sandbox, and can start others from. Only the engine looks into it, and package snapshot, which keeps it: everything between hands it
// on, since it need not be in files of this host. The zero value is none.
type Checkpoint struct {
	folder string
	name   string
	size   int64
}

// CheckpointIn is a checkpoint in files, which are all that is in a folder of this host, by its absolute path.
func CheckpointIn(folder string) Checkpoint { return Checkpoint{folder: folder} }

// CheckpointNamed is a checkpoint that the engine keeps elsewhere, under a name of its own: an image, or an object in a store. Size is what that takes there, in bytes, which
// counts towards quotas.
func CheckpointNamed(name string, size int64) Checkpoint { return Checkpoint{name: name, size: size} }

// HostFolder returns the folder of a checkpoint in files, and false for any other.
func (c Checkpoint) HostFolder() (folder string, ok bool) { return c.folder, c.folder != "" }

// Named returns the name and the size of a checkpoint that the engine keeps, and false for any other.
func (c Checkpoint) Named() (name string, size int64, ok bool) { return c.name, c.size, c.name != "" }

// HostFolderOf returns the folder of a checkpoint for what can use files of this host alone. For any other checkpoint the error is a problem with code "snapshot_unfit".
func HostFolderOf(c Checkpoint) (folder string, err error) {
	folder, ok := c.HostFolder()
	if !ok {
		return "", problem.New(problem.SnapshotUnfit, "it was saved by an engine that keeps it elsewhere, as "+c.name)
	}
	return folder, nil
}

// Saver is an Engine whose sandboxes can be saved, and started from what was saved. Not every engine is one.
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
	// Prepare starts a sandbox up to the point where spec.Checkpoint can be loaded into it, which is the slower half of a
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
	// Restore loads a checkpoint, which is Spec.Checkpoint or one of a sandbox with the same guest, and returns once the guest has connected. Memory may still be
	// loading then: files of the checkpoint must not be changed while the sandbox lives, but may be unlinked. The spec given to
	// Prepare must have the mounts and the limits of the checkpointed one, except for Memory and CPUs.
	// After an error the Prepared is of no further use and has to be stopped.
	Restore(ctx context.Context, from Checkpoint) (Sandbox, error)
	// Stop frees all that the sandbox holds, unless Restore has handed it over.
	Stop(ctx context.Context) error
}

// MemorySharer is a Checkpointer a part of whose memory can be files that it has in common with every sandbox that begins with the same checkpoint: the machine holds a page of these
// once, until a sandbox writes to it.
type MemorySharer interface {
	Checkpointer
	// ShareMemory stores what fill writes as one more file, for this sandbox's checkpoints and those of the sandboxes that begin with them, and returns the path inside at which it can be mapped. The path was not looked up before.
	// When the caller's mapping fails, the sandbox is of no further use.
	ShareMemory(fill func(io.Writer) error) (path string, err error)
	// MemoryIntact returns a problem with code "memory_changed" when somebody has changed on the disk a file that ShareMemory stored for the sandbox. Then nothing that the sandbox computes is to be
	// trusted.
	MemoryIntact() error
}

// Checkpointer is what the sandboxes of a Saver are besides.
type Checkpointer interface {
	Sandbox
	// Checkpoint saves the sandbox to files in folder, an empty folder of this host, or where the engine keeps checkpoints, and returns what it has written. The
	// caller closes the stream from Dial before. With keep the sandbox goes on afterwards, and Dial returns the guest's next connection; without, it is gone, as after Stop.
	// When it fails, also for want of room (problem "disk_full") or because ctx ended, the sandbox goes on if it can, and folder is empty again.
	Checkpoint(ctx context.Context, folder string, keep bool) (Checkpoint, error)
}
