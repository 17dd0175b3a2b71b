package session

import (
	"context"

	"cove/internal/python/kernel"
)

// Variables returns the variables of a kernel. It waits until the kernel is idle.
func (s *Live) Variables(ctx context.Context, name string) (v kernel.Variables, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		v, err = k.Variables(ctx)
		return err
	})
	return v, err
}

// Widgets returns the states of a kernel's widgets. It waits until the kernel is idle.
func (s *Live) Widgets(ctx context.Context, name string) (w kernel.WidgetStates, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		w, err = k.Widgets(ctx)
		return err
	})
	return w, err
}

// Table returns a piece of a table of a kernel. It waits until the kernel is idle. Problems: variable_unknown, not_a_table.
func (s *Live) Table(ctx context.Context, name string, q kernel.TableQuery) (t kernel.Table, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		t, err = k.Table(ctx, q)
		return err
	})
	return t, err
}

// Profile describes a column of a table of a kernel, by its number. It waits until the kernel is idle. Problems: variable_unknown, not_a_table.
func (s *Live) Profile(ctx context.Context, name, table string, column int) (p kernel.Profile, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		p, err = k.Profile(ctx, table, column)
		return err
	})
	return p, err
}

// Describe says what the name at cursor (in characters) of code stands for in a kernel. It waits until the kernel is idle.
func (s *Live) Describe(ctx context.Context, name, code string, cursor int) (text string, err error) {
	err = s.asked(ctx, name, func(k *kernel.Kernel) error {
		text, err = k.Describe(ctx, code, cursor)
		return err
	})
	return text, err
}
