package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/wire"
)

// idlePatience is how long a kernel that runs nothing may take to answer. One that was just restored has its memory
// still to load, perhaps beside a hundred others.
const idlePatience = time.Minute

// Attach takes over the kernel with process id pid (see Kernel.PID), which its former owner has released or lost its connection to, and returns when the kernel
// is ready for code. Code of the former owner that still runs is interrupted: SIGINT, again, then the kernel is killed, which is a problem with code
// "kernel_lost". A kernel that has ended already is a problem with code "kernel_not_found". Of c, Python and Env are not used. When ctx ends first, the kernel
// is released again.
func Attach(ctx context.Context, l *guestlink.Link, c Config, pid int) (*Kernel, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := l.AttachKernel(ctx, pid)
	if err != nil {
		return nil, err
	}
	k := newKernel(p, c)
	if err := k.settle(ctx, p.Busy); err != nil {
		if !problem.Has(err, problem.KernelLost) {
			_ = k.process.Detach() // an error means that the kernel is released already
		}
		k.Close()
		return nil, err
	}
	return k, nil
}

// settle makes this process the kernel's owner: the kernel takes the settings of Config, and messages for its former owner are dropped. A busy kernel is
// interrupted at once, an idle one when it does not answer.
func (k *Kernel) settle(ctx context.Context, busy bool) error {
	clock := time.NewTimer(idlePatience)
	defer clock.Stop()
	if busy {
		clock.Reset(0)
	}
	id, err := k.resume()
	if err != nil {
		return fmt.Errorf("attach to the kernel: %w", err)
	}
	for rung := 0; ; {
		select {
		case <-ctx.Done():
			return problem.New(problem.KernelAttachTimeout, "the Python interpreter did not answer in time").WithCause(ctx.Err())
		case <-clock.C:
			if rung == len(ladder) {
				return problem.New(problem.KernelLost, "the kernel did not stop its code and could not be killed")
			}
			k.signal(ladder[rung].signal)
			clock.Reset(ladder[rung].patience())
			rung++
		case m := <-k.messages:
			answered, err := k.resumed(m, id, rung == len(ladder))
			if err != nil {
				return err
			}
			if answered && rung == 0 {
				return k.process.Send(wire.ToKernel{Kind: wire.ToEnd}, nil)
			}
			if answered {
				// Ask once more: the interrupt may have come after the answer was sent, and must not hit the next execution.
				rung = 0
				clock.Reset(idlePatience)
				if id, err = k.resume(); err != nil {
					return fmt.Errorf("attach to the kernel: %w", err)
				}
			}
		}
	}
}

func (k *Kernel) resume() (id string, err error) {
	id = k.nextID("resumed")
	request := k.resumption(k.config.Reseed)
	request["id"] = id
	return id, k.send(request)
}

func (k *Kernel) resumption(reseed bool) map[string]any {
	return map[string]any{"type": "resumed", "reseed": reseed, "address_space": k.config.AddressSpace}
}

// resumed says whether a message is the answer to the resumed request id. killed says that the kernel was told to die.
func (k *Kernel) resumed(m message, id string, killed bool) (bool, error) {
	if m.err != nil {
		return false, fmt.Errorf("attach to the kernel: %w", m.err)
	}
	switch m.head.Kind {
	case wire.FromExit:
		x := execution{kernel: k}
		if killed {
			x.reason = OutcomeInterrupted
		}
		return false, problem.New(problem.KernelLost, "the kernel could not be taken over: "+x.death(m.head).Message)
	case wire.FromMessage:
		var reply struct {
			Type, ID, Python, Error string
			Tools                   bool
		}
		if json.Unmarshal(m.body, &reply) != nil || reply.Type != "resumed_reply" || reply.ID != id {
			return false, nil
		}
		if reply.Error != "" {
			return false, problem.New(problem.KernelLimitFailed, "the limit on the kernel's address space could not be set").WithCause(errors.New(reply.Error))
		}
		k.version, k.tools = reply.Python, reply.Tools
		return true, nil
	}
	return false, nil
}

// Detach releases the kernel without ending it, for Attach to take it over, and waits until it is idle: never while code runs. Afterwards nothing more can be
// done with k.
func (k *Kernel) Detach(ctx context.Context) error {
	select {
	case <-k.idle: // and the token is not returned: k cannot be used any more
	case <-k.closing:
		return ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := k.letGo(ctx)
	k.Close()
	return err
}

// letGo asks the guest to release the kernel and waits until it has. Afterwards closing the channel does not kill the kernel.
func (k *Kernel) letGo(ctx context.Context) error {
	if err := k.process.Detach(); err != nil {
		return fmt.Errorf("detach from the kernel: %w", err)
	}
	for {
		select {
		case m := <-k.messages:
			if m.head.Kind == wire.FromExit {
				return ended()
			}
			if m.err != nil {
				return nil
			}
		case <-k.closing:
			return ended()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Renew has the interpreter do again what Attach has it do: replace what names and secrets are made from, and seed its random generators.
func (k *Kernel) Renew(ctx context.Context) error {
	return k.ask(ctx, k.resumption(true), "resumed_reply", &struct{}{})
}

// Trim has the interpreter return unused memory to the system.
func (k *Kernel) Trim(ctx context.Context) error {
	return k.ask(ctx, map[string]any{"type": "trim"}, "trim_reply", &struct{}{})
}

// BeginMold makes the interpreter ready to have its memory replaced by the same memory from a file. It excludes all objects that exist now from collections of garbage, for ever. Until
// EndMold every process of the sandboxed user may stop the interpreter and change its memory.
func (k *Kernel) BeginMold(ctx context.Context) error {
	return k.ask(ctx, map[string]any{"type": "freeze"}, "freeze_reply", &struct{}{})
}

// EndMold forbids again what BeginMold allowed other processes.
func (k *Kernel) EndMold(ctx context.Context) error {
	return k.ask(ctx, map[string]any{"type": "freeze", "done": true}, "freeze_reply", &struct{}{})
}

// Forget removes the names, the history and the cell numbers of the cells that have run until now. Modules that they imported and effects outside the
// interpreter stay. It is for a kernel that has run rehearsal cells and not yet any code of a user.
func (k *Kernel) Forget(ctx context.Context) error {
	return k.ask(ctx, map[string]any{"type": "forget"}, "forget_reply", &struct{}{})
}
