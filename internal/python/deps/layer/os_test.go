package layer_test

import (
	"archive/zip"
	"os"
	"syscall"
	"testing"
)

type zipHeader = zip.FileHeader

const noSpace = syscall.ENOSPC

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}
