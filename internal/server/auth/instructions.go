package auth

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"cove/internal/core/problem"
)

// LongestInstructions bounds the instructions of a project, in characters: every request to a model carries them.
const LongestInstructions = 8000

// Instructions returns what models are asked to do in all conversations of a project that the caller sees; "" is its own. Needs ConversationsRead.
func (a *Accounts) Instructions(ctx context.Context, who Principal, project string) (string, error) {
	if err := who.Require(ConversationsRead); err != nil {
		return "", err
	}
	p, err := a.projectFor(ctx, who, project)
	return p.Instructions, err
}

// SetInstructions sets them; "" removes them. They hold for turns that begin afterwards. Needs UsersManage: they steer what models do for every member. Problems: instructions_invalid.
func (a *Accounts) SetInstructions(ctx context.Context, who Principal, project, text string) (Project, error) {
	p, err := a.setInstructions(ctx, who, project, text)
	if err == nil {
		who.Project = p.ID // whose instructions changed
	}
	return p, a.record(ctx, who, "project.instructions", project, fmt.Sprintf("%d characters", utf8.RuneCountInString(p.Instructions)), err)
}

func (a *Accounts) setInstructions(ctx context.Context, who Principal, project, text string) (Project, error) {
	if err := who.Require(UsersManage); err != nil {
		return Project{}, err
	}
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n > LongestInstructions {
		return Project{}, problem.New(problem.InstructionsInvalid, fmt.Sprintf("the instructions of a project have at most %d characters, and these have %d", LongestInstructions, n)).
			WithHint("put longer texts into a file, and say in the instructions when to read it")
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return Project{}, problem.New(problem.InstructionsInvalid, "the instructions of a project are text in UTF-8")
	}
	p, err := a.projectFor(ctx, who, project)
	if err != nil {
		return Project{}, err
	}
	return a.Store.ChangeProject(ctx, p.ID, func(p *Project) error { p.Instructions = text; return nil })
}

// InstructionsOf returns the instructions of a project, for hub.Options.Instructions.
func (a *Accounts) InstructionsOf(ctx context.Context, project string) (string, error) {
	p, err := a.Store.Project(ctx, project)
	return p.Instructions, err
}
