package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"cove/internal/packaging/gobuild"
)

// programs builds cove for every architecture and lays out, for each, the folder that its archive and its packages are made from.
func (r *release) programs(ctx context.Context) error {
	for _, arch := range architectures() {
		stage := filepath.Join(r.tmp, "stage", r.name(arch))
		r.stages[arch] = stage
		say("building for " + arch)
		if err := r.source.Program(ctx, arch, filepath.Join(stage, "cove")); err != nil {
			return err
		}
	}
	own := filepath.Join(r.stages[runtime.GOARCH], "cove")
	if _, err := os.Stat(own); err != nil {
		return fmt.Errorf("a release is made on one of %v, because the program writes its own manual: %w", architectures(), err)
	}
	for arch, stage := range r.stages {
		if err := gobuild.WriteNotices(ctx, arch, filepath.Join(stage, gobuild.Notices)); err != nil {
			return err
		}
		if err := writeManual(ctx, own, stage); err != nil {
			return err
		}
		for _, name := range []string{"LICENSE", "README.md"} {
			if err := copyFile(name, filepath.Join(stage, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeManual has the program write its manual pages and what makes shells complete its commands.
func writeManual(ctx context.Context, program, stage string) error {
	home, err := os.MkdirTemp("", "cove-release-home-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	clean := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"} // nothing of the user's settings
	man := exec.CommandContext(ctx, program, "man", filepath.Join(stage, "man"))
	man.Env = clean
	if err := gobuild.Run(man); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(stage, "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "cove.bash", "zsh": "_cove", "fish": "cove.fish"} {
		completion := exec.CommandContext(ctx, program, "completion", shell)
		completion.Env = clean
		text, err := completion.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", completion, err)
		}
		if err := os.WriteFile(filepath.Join(stage, "completions", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
