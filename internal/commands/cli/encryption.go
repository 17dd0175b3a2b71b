package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"cove/internal/commands/terminal"
	"cove/internal/core/durable"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/core/seal"
)

// Encryption is how the data of this machine and its database is encrypted.
type Encryption interface {
	Status(ctx context.Context) (EncryptionStatus, error)
	// On encrypts what is there, and goes on where it was interrupted. told hears how far it is.
	On(ctx context.Context, told func(what string, done, all int64)) error
	// Rotate wraps the data keys with the first of the operator's keys. With fresh there is another data key for what is written from then on. changed says whether there was anything to do.
	Rotate(ctx context.Context, fresh bool) (changed bool, err error)
}

// EncryptionStatus says what is encrypted, and with which keys.
type EncryptionStatus struct {
	Set    []string         `json:"keys_set"` // the operator's keys that are set, by their names; the first one wraps
	Places []EncryptedPlace `json:"places"`
}

// EncryptedPlace is the database, or the sessions and stored files of this machine.
type EncryptedPlace struct {
	Name       string    `json:"name"`
	Encrypted  bool      `json:"encrypted"`
	Unfinished bool      `json:"unfinished"` // `cove encryption on` was interrupted
	Keys       []DataKey `json:"data_keys"`
}

// DataKey is a data key of a place.
type DataKey struct {
	Number uint32    `json:"number"`
	Made   time.Time `json:"made"`
	Under  string    `json:"wrapped_with"` // the name of an operator's key
}

type encryptionCmd struct {
	Status encryptionStatusCmd `cmd:"" help:"Say what is encrypted, and with which keys."`
	On     encryptionOnCmd     `cmd:"" help:"Encrypt the data that is there, while no server runs."`
	Rotate encryptionRotateCmd `cmd:"" help:"Wrap the data keys with another key of yours; also while a server runs."`
	Key    encryptionKeyCmd    `cmd:"" help:"Make a key."`
}

// Help is the long help.
func (encryptionCmd) Help() string {
	return `With a key of yours, cove encrypts what it keeps: conversations, code and output in the database, stored files, saved sessions. It is off without one.

    cove encryption key new /etc/cove/encryption.key
    export COVE_ENCRYPTION_KEY_FILE=/etc/cove/encryption.key   # or encryption.key_file in the config file
    cove encryption on        # only where there is data already

Keep a copy of the key elsewhere: without it nobody can read the data, nor its backups. Another key takes its place so:

    cove encryption key new --first /etc/cove/encryption.key
    cove encryption rotate

The former keys stay in the file until no backup needs them.`
}

type encryptionKeyCmd struct {
	New encryptionKeyNew `cmd:"" help:"Make a key and write it to a file."`
}

type encryptionKeyNew struct {
	File  string `arg:"" help:"The file, which must not exist; with --first it must."`
	First bool   `help:"Put the key before those that the file has: it is the one that is used, and the others are there to read what is encrypted with them."`
}

func (c *encryptionKeyNew) run(_ context.Context, p *Program) (int, error) {
	old, err := os.ReadFile(c.File)
	switch {
	case err == nil && !c.First:
		return 0, problem.New(problem.FileExists, c.File+" exists already").WithHint("give another name, or put a new key before those that it has with --first")
	case err != nil && (c.First || !errors.Is(err, fs.ErrNotExist)):
		return 0, unreadable(c.File, err)
	}
	if _, err := seal.ParseKeys(string(old)); err != nil {
		return 0, err
	}
	text := seal.NewKey()
	keys, err := seal.ParseKeys(text)
	if err != nil {
		return 0, err
	}
	line := fmt.Sprintf("# %s, made %s\n%s\n", keys[0].ID, time.Now().UTC().Format(time.DateOnly), text)
	if c.First {
		err = durable.Replace(c.File, 0o600, strings.NewReader(line+string(old)))
	} else {
		_, err = writeWhole(c.File, 0o600, func(w io.Writer) error {
			_, err := io.WriteString(w, line)
			return err
		})
	}
	if err != nil {
		return 0, unwritable(c.File, err)
	}
	if c.First {
		_, err = lang.Fprintf(p.Out, "The file %[2]s has the key %[1]s. It counts after `cove encryption rotate`; keep a copy of the file elsewhere.\n", keys[0].ID, c.File)
	} else {
		_, err = lang.Fprintf(p.Out, "The file %[2]s has the key %[1]s. Set COVE_ENCRYPTION_KEY_FILE to it, and keep a copy elsewhere: without the key nobody can read what is encrypted.\n", keys[0].ID, c.File)
	}
	return 0, err
}

type encryptionStatusCmd struct {
	configFlag
	JSON bool `name:"json" help:"Print one JSON object."`
}

func (c *encryptionStatusCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err != nil {
		return 0, err
	}
	s, err := p.Encryption(cfg).Status(ctx)
	if err != nil {
		return 0, err
	}
	if c.JSON {
		return 0, json.NewEncoder(p.Out).Encode(s)
	}
	var b strings.Builder
	lang.Fprintf(&b, "keys that are set: %s\n", orNone(strings.Join(s.Set, ", ")))
	for _, place := range s.Places {
		state := lang.Text("not encrypted")
		switch {
		case place.Unfinished:
			state = lang.Text("partly encrypted; `cove encryption on` goes on with it")
		case place.Encrypted:
			state = lang.Text("encrypted")
		}
		fmt.Fprintf(&b, "%s: %s\n", placeName(place.Name), state)
		for _, k := range place.Keys {
			lang.Fprintf(&b, "  data key %08x of %s, wrapped with %s\n", k.Number, k.Made.Format(time.DateOnly), k.Under)
		}
	}
	_, err = io.WriteString(p.Out, b.String())
	return 0, err
}

// placeName is what people call a place, in their language.
func placeName(name string) string {
	if name == "sessions and stored files" {
		return lang.Text("sessions and stored files")
	}
	return lang.Text(name)
}

func orNone(text string) string {
	if text == "" {
		return lang.Text("none")
	}
	return text
}

type encryptionOnCmd struct {
	configFlag
	Quiet bool `short:"q" help:"Say nothing but errors."`
}

// Help is the long help.
func (encryptionOnCmd) Help() string {
	return `It may be interrupted, and goes on when it is called again. Until it has ended no server starts on the data. What a disk had before may still be in its free blocks, and in older
backups: those have to be overwritten, or thrown away.`
}

func (c *encryptionOnCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return 0, err
	}
	var live *terminal.Live
	if !c.Quiet {
		live = p.live
	}
	err = p.Encryption(cfg).On(ctx, func(what string, done, all int64) {
		live.Progress(lang.Sprintf("encrypting %s: %d of %d", what, done, all))
	})
	live.Over()
	if err != nil {
		if ctx.Err() != nil {
			return exitInterrupted, problem.New(problem.GivenUp, "stopped; `cove encryption on` goes on from here")
		}
		return 0, err
	}
	if !c.Quiet {
		_, err = fmt.Fprintln(p.Out, lang.Text("the database, the sessions and the stored files are encrypted"))
	}
	return 0, err
}

type encryptionRotateCmd struct {
	configFlag
	DataKey bool `help:"Make new data keys, too, for what is written from then on, while no server runs: where somebody may have had the former ones."`
}

func (c *encryptionRotateCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg, err := c.settings(p)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return 0, err
	}
	changed, err := p.Encryption(cfg).Rotate(ctx, c.DataKey)
	if err != nil {
		return 0, err
	}
	said := lang.Text("all data keys are wrapped with the first key already")
	if changed {
		said = lang.Text("the data keys are wrapped with the first key; keep the others for as long as a backup needs them")
	}
	_, err = fmt.Fprintln(p.Out, said)
	return 0, err
}
