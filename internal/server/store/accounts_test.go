package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cove/internal/core/problem"
	"cove/internal/server/audit"
	"cove/internal/server/auth"
	"cove/internal/server/store"
	"cove/internal/server/store/pgtest"
)

// servers are the accounts of several processes that share a database.
func servers(t *testing.T, database string, n int) []*auth.Accounts {
	t.Helper()
	out := make([]*auth.Accounts, n)
	for i := range out {
		s := open(t, database)
		out[i] = &auth.Accounts{Store: s, Audit: s}
	}
	return out
}

func TestServersThatStartAtOnceMakeOneFirstKey(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := servers(t, database(t), 6)
			texts := make([]string, len(all))
			race(len(all), func(i int) {
				var err error
				if texts[i], err = all[i].Found(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
			first := ""
			for _, text := range texts {
				if text != "" && first != "" {
					t.Error("two servers made a first key")
				}
				first += text
			}
			who, err := all[0].Authenticate(t.Context(), first)
			must(t, err)
			all[0].Wait()
			rows, err := all[0].Rows(t.Context(), who, true, audit.Query{Limit: 100})
			must(t, err)
			if len(rows) != 3 {
				t.Errorf("the log has %d rows about a user, a project and a key", len(rows))
			}
		})
	}
}

// TestOneOfTwoStays: the server keeps an admin and a project an owner, whoever takes whom away at the same moment and wherever.
func TestOneOfTwoStays(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, root := t.Context(), auth.Local()
			both := servers(t, database(t), 2)
			_, err := both[0].Found(ctx, "")
			must(t, err)
			for round := range 8 {
				p, err := both[0].CreateProject(ctx, root, fmt.Sprint("project ", round))
				must(t, err)
				var users [2]auth.User
				for i := range users {
					users[i], err = both[0].CreateUser(ctx, root, fmt.Sprint("user ", round, i), true)
					must(t, err)
					_, err = both[0].SetMember(ctx, root, auth.Membership{Project: p.ID, User: users[i].ID, Role: auth.Owner})
					must(t, err)
				}
				_, err = both[0].SetMember(ctx, root, auth.Membership{Project: p.ID, User: root.User})
				must(t, err)
				done := [2]error{}
				race(2, func(i int) {
					if round%2 == 0 {
						done[i] = both[i].DeleteUser(ctx, root, users[i].ID)
					} else {
						_, done[i] = both[i].SetMember(ctx, root, auth.Membership{Project: p.ID, User: users[i].ID, Role: auth.Viewer})
					}
				})
				if (done[0] == nil) == (done[1] == nil) || problem.Of(errors.Join(done[0], done[1])).Code != "last_owner" {
					t.Fatalf("round %d: the two ended with %v and %v", round, done[0], done[1])
				}
			}
		})
	}
}

func TestStepsOfTwoProcessesDoNotMix(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	one, other := open(t, address), open(t, hasty(t, address))
	must(t, one.Alone(t.Context(), func(context.Context, auth.Store) error {
		wantCode(t, other.Alone(t.Context(), func(context.Context, auth.Store) error { return nil }), "database_unavailable")
		return nil
	}))
	must(t, other.Alone(t.Context(), func(context.Context, auth.Store) error { return nil }))
}

func TestAFailedStepLeavesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		no := errors.New("no")
		err := s.Alone(t.Context(), func(ctx context.Context, in auth.Store) error {
			if err := in.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada"}); err != nil {
				return err
			}
			if u, err := in.User(ctx, "ada"); err != nil || u.ID != "usr_a" {
				t.Errorf("within the step the user is %+v, %v", u, err)
			}
			return no
		})
		if !errors.Is(err, no) {
			t.Errorf("the error came back as %v", err)
		}
		_, err = s.User(t.Context(), "ada")
		wantCode(t, err, "user_not_found")
		wantCode(t, s.Alone(t.Context(), func(ctx context.Context, in auth.Store) error {
			return errors.Join(in.AddUser(ctx, auth.User{ID: "usr_a", Name: "ada"}), in.AddUser(ctx, auth.User{ID: "usr_b", Name: "ada"}))
		}), "user_exists")
	})
}

// TestAHolderJoinsOnce: access tokens of the same holder that come to several servers at once make one user with one key, which is found by its subject afterwards; of several the one that is good.
func TestAHolderJoinsOnce(t *testing.T) {
	t.Parallel()
	for name, database := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			all := servers(t, database(t), 4)
			_, err := all[0].Found(ctx, "")
			must(t, err)
			ada := auth.Identity{Issuer: "https://id.example.com", Claim: "sub", Value: "ada"}
			join := &auth.Membership{Project: "local", Role: auth.Member}
			keys := make([]string, len(all))
			race(len(all), func(i int) {
				who, err := all[i].AuthenticateHolder(ctx, ada, join)
				if keys[i] = who.Key; err != nil {
					t.Error(err)
				}
			})
			for _, key := range keys {
				if key == "" || key != keys[0] {
					t.Errorf("the keys are %q", keys)
				}
			}
			for _, one := range all {
				one.Wait()
			}
			_, err = all[1].RevokeKey(ctx, auth.Local(), keys[0])
			must(t, err)
			if _, err := all[1].AuthenticateHolder(ctx, ada, join); !problem.Has(err, problem.HolderUnknown) {
				t.Errorf("a link that was revoked: %v", err)
			}
			again, _, err := all[1].CreateKey(ctx, auth.Local(), auth.NewKey{Name: "again", User: "ada", Holder: &ada})
			must(t, err)
			who, err := all[1].AuthenticateHolder(ctx, ada, nil)
			must(t, err)
			if who.Key != again.ID {
				t.Errorf("%+v is not by %s", who, again.ID)
			}
			all[1].Wait()
			if _, err := all[1].Store.KeyOf(ctx, ""); !problem.Has(err, problem.KeyNotFound) {
				t.Errorf("a key of nobody: %v", err)
			}
		})
	}
}
